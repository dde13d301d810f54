"""The plan as arguments of bubblewrap, for `--args`: nothing of it shows in a list of processes."""

from __future__ import annotations

from tui.permissions.sandbox.walls import Plan

_ALWAYS = (
    "--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
    "--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
)  # fmt: skip


def arguments(plan: Plan, cwd: str) -> list[str]:
    """Build the arguments. Neither the environment nor the network is among them: the zygote sets
    up both."""
    words = list(_ALWAYS)
    for kind, source, target in plan.mounts:
        if kind == "tmpfs":
            words += ["--perms", source, "--tmpfs", target]
        elif kind in {"bind", "ro-bind"}:
            words += [f"--{kind}", source, target]
        elif kind != "link":  # it cannot mount one: the zygote does
            words += [f"--{kind}", target]
    return [*words, "--chdir", cwd]
