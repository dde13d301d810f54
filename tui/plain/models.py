"""Which model is asked: chosen by number, or named."""

from __future__ import annotations

from tui.app.commands.models import rows
from tui.app.dialog_data import ModelRow
from tui.plain.conversation import Talk, opened
from tui.plain.speech_text import counted, numbered


async def model(talk: Talk, name: str) -> None:
    """/model chooses the model of the next request, /model NAME names it."""
    agent = opened(talk)
    if name:
        await use_model(talk, name)
    elif talk.busy:
        known = await rows(talk.services, agent)
        talk.face.say(*numbered(model_line(row) for row in known), "/model NAME switches.")
    else:
        await choose_model(talk)


async def choose_model(talk: Talk) -> bool:
    """Let the person choose. Whether another model is asked now."""
    if talk.agent is None:
        return False
    listed = await rows(talk.services, talk.agent)
    labels = [(row.name, model_line(row)) for row in listed]
    name = await talk.asker.choose(["Which model?"], labels)
    return name is not None and await use_model(talk, name)


def model_line(row: ModelRow) -> str:
    """A model, and whether the session fits it."""
    facts = [row.name, f"window {counted(row.window)}"]
    facts += ["in use now"] if row.now else []
    facts += [f"fallback {row.fallback}"] if row.fallback else []
    facts += [] if row.fits else [f"too small, the session needs {counted(row.needs)}"]
    facts += [f"price {row.price}"] if "$" in row.price else []
    return ", ".join(facts)


async def use_model(talk: Talk, name: str) -> bool:
    """Ask another model from the next request on; one that is too small only if that is meant."""
    agent = talk.agent
    if agent is None:
        return False
    if name == agent.model:
        talk.face.say(f"The model is {name} already.")
        return False
    info = await talk.services.model_info(name)
    fit = agent.fits(info)
    if not fit.ok:
        needs = f"The session needs {counted(fit.tokens)} with what the next answer takes"
        lines = [
            f"Switch to {name}?",
            (
                f"{needs}, and its window holds {counted(fit.window)}."
                " The oldest part would be shortened."
            ),
        ]
        if not await talk.asker.confirm(lines, "switch", "stay"):
            return False
    before = agent.model
    agent.use_model(info)
    talk.face.say(f"From the next request on: {name}. /model {before} goes back.")
    return True
