"""The sandbox: which engine confines commands here, and whether each of its walls holds."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tui.app.doctor.check import Check, Subject
from tui.core.workspace import Workspace
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.sandbox.proof import Proof, prove

_INSTALL = "Install bubblewrap, or ask your admin to allow user namespaces."
_ALLOW = (
    "bubblewrap is installed but can't make namespaces: ask your admin to allow user namespaces;"
    " in a container, see `holdfast help containers`."
)
_PROFILE = (
    "Ubuntu: sudo apt install apparmor-profiles, then"
    " sudo ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/"
    " and sudo systemctl reload apparmor."
)


def sandbox(what: Subject) -> Iterator[Check]:
    """Try every wall with the engine that would be used."""
    if what.config.sandbox.engine == "off":
        yield Check("sandbox", "warn", "off: commands that aren't plain ask first", "")
        return
    with TemporaryDirectory(prefix="holdfast-") as folder:
        place = Path(folder)
        confinement = Confinement(
            what.config.sandbox,
            Workspace.at(what.workspace),
            place / "session",
            place / "cache",
            environment=what.env,
        )
        proofs = asyncio.run(_proofs(confinement))
    install = _ALLOW if shutil.which("bwrap", path=what.env.get("PATH", os.defpath)) else _INSTALL
    if proofs is None:
        refused = _PROFILE if "without a profile" in confinement.reason else install
        fix = confinement.cure or refused
        detail = f"nothing confines commands, so they ask first ({confinement.reason})"
        yield Check("sandbox", "warn", detail, fix)
        return
    engine, tried = proofs
    broken = [f"{proof.wall}: {proof.detail or 'no wall'}" for proof in tried if not proof.holds]
    if broken:
        yield Check("sandbox", "fail", f"{engine}: a wall has a hole: {'; '.join(broken)}", "")
        return
    walls = ", ".join(proof.wall for proof in tried)
    if engine == "landlock":
        detail = f"landlock confines read-only commands, others ask first; tried: {walls}"
        chosen = what.config.sandbox.engine == "landlock"
        yield Check("sandbox", "ok", detail, "" if chosen else install)
        return
    yield Check("sandbox", "ok", f"{engine}; tried and blocked: {walls}", "")


async def _proofs(confinement: Confinement) -> tuple[str, list[Proof]] | None:
    engine = await confinement.engine()
    if engine is None:
        return None
    return engine.value, await prove(engine, confinement.walls())
