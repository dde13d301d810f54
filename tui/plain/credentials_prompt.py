"""How a model is reached, asked as lines: what the welcome screen asks."""

from __future__ import annotations

from tui.app.dialog_data import KeySetup, PracticeSetup, ServerSetup, Setup
from tui.core.errors import HoldfastError
from tui.plain.conversation import Talk
from tui.plain.speech_text import sentence


async def set_up(talk: Talk, why: str) -> bool:
    """Ask how to reach a model, until that is kept. False when the person wants none."""
    servers = {server.base_url: server for server in await talk.services.probe_servers()}
    ways = [
        ("key", "paste an API key of Anthropic"),
        *(
            (url, f"{server.name} on this machine: {', '.join(server.models[:2]) or 'no models'}")
            for url, server in servers.items()
        ),
        ("server", "another server: address and model"),
        ("practice", "the practice model: offline, without a key"),
    ]
    head = [sentence(why), "How shall it reach a model?"]
    while (way := await talk.asker.choose(head, ways)) is not None:
        known = servers.get(way)
        models = known.models if known else ()
        setup = await _asked(talk, way, models[0] if models else "")
        if setup is None:
            continue
        try:
            talk.face.say(await talk.services.set_up(setup))
        except HoldfastError as error:
            talk.explain(error)
            continue
        return True
    return False


async def _asked(talk: Talk, way: str, usual: str) -> Setup | None:
    """What a way needs to know; None where it was not told."""
    if way == "practice":
        return PracticeSetup()
    if way == "key":
        key = await talk.asker.text("API key, not shown: ", hidden=True)
        return KeySetup(key) if key else None
    url = way if "://" in way else await talk.asker.text("Address, with http:// or https://: ")
    if not url.startswith(("http://", "https://")):
        talk.face.say("The address must begin with http:// or https://.")
        return None
    hint = f", or only Enter for {usual}" if usual else ""
    model = await talk.asker.text(f"The model's name there{hint}: ") or usual
    if not model:
        talk.face.say("Name the model that the server shall use.")
        return None
    key = await talk.asker.text("Key, if it needs one, not shown: ", hidden=True)
    return ServerSetup(url.rstrip("/"), model, key)
