"""Sentence templates; a name in braces is a slot of the lexicon.

The lines of one group say or ask one thing in several ways.
"""

GROUPS = [
    "{person} works as a {job} at {employer}|{person} is a {job}|What does {person} do for a living?|Where does {person} work?|Who works as a {job}?"
    "|I got a job as a {job}|I quit my job at {employer} {time}|What is {person}'s profession?|My employer is {employer}",
    "{person} lives in {city}|I moved from {city} to {city} {time}|Where does {person} live?|{person} bought {home} in {city}|We rent {home} near {place}"
    "|Which city did {person} move to?|I grew up in {country}|Where is {person} from?|{person} is originally from {country}|My address is in {city}",
    "I love {food}|I hate {food}|{person} cooked {food} with {food} {time}|What does {person} like to eat?|My favourite dish is {food}"
    "|I had {food} for dinner|Do you have a recipe for {food}?|{person} does not eat {food}|What is {person}'s favourite food?",
    "I drink {drink} every morning|{person} prefers {drink} to {drink}|Would you like some {drink}?|What does {person} drink?|I stopped drinking {drink}",
    "{person} is {diet}|I have been {diet} {time}|Is {person} {diet}?|What can't {person} eat?|Please remember that I am {diet}",
    "{person} enjoys {hobby}|I started {hobby} {time}|What are {person}'s hobbies?|{hobby} helps me to relax|I go {hobby} with {person}"
    "|What does {person} do in their free time?|How long has {person} been into {hobby}?|I am too busy for {hobby}|{person} taught me {hobby}",
    "We have {pet}|{person} got {pet} {time}|What pets does {person} have?|{pet} ran away {time}|I took {pet} to the vet|{person} wants to adopt {pet}",
    "{person} has {illness}|I was in hospital with {illness} {time}|How is {person}'s health?|{person} is recovering from {illness}"
    "|The doctor said it is {illness}|Why did {person} go to the doctor?|I need an appointment because of {illness}|I take pills for {illness}",
    "{person} is going to {event} {time}|{event} was {quality}|When is {event}?|Who came to {event}?|I am planning {event} {time}"
    "|When did {person} go to {event}?|{person} invited us to {event} in {city}|I missed {event} because of {illness}|What happened at {event}?",
    "I feel {feeling} about {event}|{person} was {feeling} {time}|How does {person} feel about {goal}?|That makes me so {feeling}"
    "|I'm {feeling} that you are here|Why is {person} {feeling}?|What made {person} {feeling}?|{goal} made me {feeling}",
    "{person} bought {thing} {time}|I lost {thing} at {place}|{thing} was {quality}|What did {person} buy?|I want to sell {thing}"
    "|Where did {person} leave {thing}?|{person} gave me {thing} as a gift|How much did {thing} cost?|I am looking for {thing} under a hundred dollars",
    "We went to {place} {time}|{place} was {quality}|Where did {person} go {time}?|Let's meet at {place} {time}|I spent the day at {place} with {person}"
    "|What did you see at {place}?|How do I get to {place}?|{person} took photos of {nature} at {place}",
    "We are travelling to {country} {time}|I booked a flight to {city}|When is the trip to {country}?|The hotel in {city} was {quality}"
    "|Which countries has {person} visited?|{person} came back from {country} {time}|Have you ever been to {city}?",
    "{person} saw {art} {time}|I am reading {art} about {nature}|{art} was {quality}|What is {person} reading?|I wrote {art} about {person}"
    "|Can you recommend {art}?|{person} listens to {genre}|What kind of music does {person} like?|I never liked {genre}|We heard {genre} at {place}",
    "{tech} {problem} {time}|{person} is working on {tech}|Could you send me {tech}?|Why was {tech} {quality}?|Remind me to check {tech} {time}"
    "|How do I fix {tech}?|What is wrong with {tech}?|I prefer {tech} over {tech}|{person} approved {tech} {time}|The deadline for {tech} is {time}",
    "I want to {goal}|{person} plans to {goal} {time}|What are {person}'s plans?|It is hard to {goal}|How can I {goal}?|{person} managed to {goal}"
    "|What does {person} want to do next?|{person} encouraged me to {goal}|We decided to {goal} after {event}",
    "{person} studies {subject} in {city}|I failed the {subject} exam|What did {person} study?|{person} teaches {subject} at school"
    "|I have a degree in {subject}|Which subject does {person} teach?",
    "I paid {money} {time}|{person} asked about {money}|How much is {money}?|We can't afford {money}|{person} got {money} from {employer}",
    "It was {weather} in {city}|The weather is {quality} {time}|Will it be {weather} {time}?|We stayed at home since it was {weather}",
    "{person} is {family}|{person} got {family} {time}|Is {person} {family}?|What is {person}'s relationship status?|{person} has {number} children"
    "|How many siblings does {person} have?|{person} and {person} are {family}",
    "I painted the {room}|The {room} is {quality}|We are renovating the {room} {time}|What colour is the {room}?|{person} cleaned the {room} {time}",
    "{person} called {person} {time}|I had an argument with {person}|{person} helped me with {tech}|Who did {person} talk to?"
    "|How did {person} and {person} meet?|Tell {person} about {event}|{person} is {quality} at {hobby}|I have known {person} {time}",
    "Look at {nature}!|I saw {nature} at {place} {time}|{person} loves {nature}|What does {nature} remind you of?|{nature} makes me feel {feeling}",
    "There were {number} people at {event}|I have {number} books about {subject}|How many times did {person} go to {place}?|It took {number} hours to {goal}",
    "Hi, how are you?|Thanks, that is {quality}!|Wow, how {quality}!|That's {quality}, {person}!|Good luck with {event}!|Sorry to hear about {illness}."
    "|Sounds {quality}, see you {time}.|Congratulations on {event}!|Take care of {person}!|Don't worry about {tech}.|You're welcome.|What's new with {person}?",
]

JOINTS = [". ", ", and ", ", but ", " because ", ". By the way, ", "! ", ", so ", ". Then "]

# A word takes the place of *.
FRAMES = [
    "*", "the *", "a * *", "I like *", "what is *?", "tell me about the *", "we talked about * and *", "the * was very *", "he was * by the *",
    "do you know any *?", "my * needs a *", "a photo of a * with a *", "they * the * last year", "is the * * or *?", "she said that * is *",
    "how to * a *", "the history of *", "* in the *", "I was thinking about *", "there is no * without *", "when did the * *?", "it is about * *",
]
