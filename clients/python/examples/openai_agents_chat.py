"""python openai_agents_chat.py http://127.0.0.1:8080

Two sessions of one user. The second agent is told what the first session taught. A
script stands in for the model, so that no key is needed."""

import asyncio
import sys
import uuid

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from palimpsest_adapters.openai_agents import PalimpsestSession


class Script(Model):
    """Answers with the number of items that it is given, and with what it is told about Oslo."""

    async def get_response(self, system_instructions, input, *args, **kwargs):
        told = "Oslo" in (system_instructions or "")
        text = f"I see {len(input)} items" + (", and you live in Oslo." if told else ".")
        message = ResponseOutputMessage(
            id="msg_1", type="message", role="assistant", status="completed",
            content=[ResponseOutputText(type="output_text", text=text, annotations=[])],
        )  # fmt: skip
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


async def say(session: PalimpsestSession, text: str) -> None:
    agent = Agent(name="helper", instructions=await session.recall(text), model=Script())
    result = await Runner.run(agent, text, session=session)
    print(result.final_output)


async def main() -> None:
    set_tracing_disabled(True)
    address = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
    user = f"agents-{uuid.uuid4()}"
    first = PalimpsestSession("first", address, user=user)
    await say(first, "I live in Oslo.")
    await say(first, "What did I say?")
    await first.end()
    await say(PalimpsestSession("second", address, user=user), "Where do I live?")


asyncio.run(main())
