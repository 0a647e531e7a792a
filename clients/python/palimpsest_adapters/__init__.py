"""Adapters of agent frameworks to Palimpsest.

Each module needs the package of its framework: ``langgraph`` for
``palimpsest_adapters.langgraph``, ``openai-agents`` for ``.openai_agents`` and
``google-adk`` for ``.google_adk``.
"""
