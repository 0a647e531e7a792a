"""python google_adk_agent.py http://127.0.0.1:8080

Two sessions of one user. ADK's preload_memory tool gives the second one what the first
one taught. A script stands in for the model, so that no key is needed."""

import asyncio
import sys
import uuid

from google.adk.agents import Agent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.preload_memory_tool import preload_memory_tool
from google.genai import types

from palimpsest_adapters.google_adk import PalimpsestMemoryService

APP = "travel"


class Script(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        given = [part.text or "" for content in llm_request.contents for part in content.parts]
        told = any("<PAST_CONVERSATIONS>" in text and "Oslo" in text for text in given)
        text = "You live in Oslo." if told else "Noted."
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


async def main() -> None:
    memory = PalimpsestMemoryService(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080")
    sessions = InMemorySessionService()
    agent = Agent(name="helper", model=Script(model="script"), tools=[preload_memory_tool])
    runner = Runner(app_name=APP, agent=agent, session_service=sessions, memory_service=memory)
    user = f"adk-{uuid.uuid4()}"
    for text in ["I live in Oslo.", "Where do I live?"]:
        session = await sessions.create_session(app_name=APP, user_id=user)
        said = types.Content(role="user", parts=[types.Part(text=text)])
        async for event in runner.run_async(user_id=user, session_id=session.id, new_message=said):
            print(event.content.parts[0].text)
        session = await sessions.get_session(app_name=APP, user_id=user, session_id=session.id)
        await memory.add_session_to_memory(session)


asyncio.run(main())
