// Package rulepack is the extractor that needs no model: versioned packs of
// patterns over clauses, as data, and the engine that runs them.
//
// A text passes through three packages: grammar cuts it into tokens, sentences and
// clauses by the words of a language, pattern matches patterns on a clause, and
// rulepack reads what a match states, of whom, and in which pack it stands.
//
// # The fields of a candidate
//
// Subject is "user" for the speaker, the name of another person ("Tom") or, if the
// name is unknown, their relation ("user's sister"). Text begins with that
// subject: "The user likes Python.", "Tom dislikes cilantro.", "The user's
// sister lives in Paris.". EventTime is the time of the statement, except for an
// event, which has a time of its own (category event), and one to come holds from its
// statement on (ValidFrom): "I see the dentist on Tuesday" is found before Tuesday. So a state that began last
// week by the statement ("I moved to Bergen last week": ValidFrom) is still newer
// than one that was stated yesterday.
//
// # Languages
//
// English is read to the depth of the scheme below, Russian to most of it, German,
// French, Spanish, Italian and Portuguese as far as names, homes, work, likes,
// families, pets, health, diet, languages, contact data and instructions. A pack
// is data: what differs between languages beyond words (a subject behind its verb,
// words written together, capitals of nouns) is a field of [grammar.Lexicon].
//
// # The scheme of predicates
//
// One value at a time (cardinality one): name, preferred_name, surname, age, birthday,
// pronouns, gender, lives_in, from, born_in, work, employment_status,
// marital_status, religion, attends, phone, email, address, contact_channel,
// response_style, earns, favorite_{topic}, has_wife, has_husband, has_partner,
// has_mother, has_father (and the like), has_boss, blood_type, drives.
//
// Many: lived_in, studies, degree, has_{relation}, has_pet, likes, dislikes,
// prefers (object "Julia over Matlab"), hobby, habit, diet, allergic_to,
// condition, medication, skill, speaks, uses, works_on, deadline, wants_to,
// plans_to, did, upcoming, owns, thinks, copes_by, is, fears, instruction,
// treatment, handle, quit, learning, works_with, pays, owes, saves, budget,
// bank, invests_in, raised_by, had_relative, family_role ("mother of two").
//
// Work is one fact, because role, employer and field say more together than
// apart: predicate "work", cardinality one, the object composed as
// "as a ROLE at EMPLOYER in FIELD" with any part absent, and the Text
// "The user works " + object + ".". "as a hydrologist at Fenwick Labs" followed
// by "at Tarn Institute" is a contradiction of the employer alone and merges to
// "as a hydrologist at Tarn Institute"; "in tech" followed by "as a senior
// engineer at Fenwick" is a refinement and merges to all three. The rules are
// memory.ParseWork and memory.MergeWork; since Text holds Object verbatim, the
// merged text is the candidate's with its object replaced by the merged one.
//
// # Ends of facts
//
// Negated means that the triple holds no longer, or not at all ("I've left
// Fenwick": user work "at Fenwick"; an empty object means any known object). An
// object may be shorter than the known one ("Fenwick", "Fenwick Labs"); of a
// composed work fact only the named part ends (memory.MergeWork again).
// A statement that something is absent or over, and that gives no earlier state,
// is a fact of its own that retracts the triple: (user, has_pet, "no pets"),
// (user, quit, "quit smoking"), (user, did, "left Fenwick").
// A negated candidate that has a successor in the same episode ("I've left
// Fenwick, I'm with Tarn now") is not emitted: the successor carries it in
// Retracts. A Retracts of the candidate's own (subject, predicate) of
// cardinality one needs no delta of its own, the UPDATE replaces it. Diets are
// many ("vegan", "gluten-free"), and those that exclude each other carry the
// others in Retracts: "I started eating meat again" is (user, diet, "eats meat")
// and retracts vegetarian, vegan and pescatarian.
package rulepack
