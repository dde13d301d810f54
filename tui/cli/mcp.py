"""`holdfast mcp …`: add, list and remove MCP servers, and sign in to them."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tui.agent.confined_programs import make_servers
from tui.app import launch_config
from tui.app.options.arguments import Options
from tui.app.session_path import workspace_of
from tui.cli.session_io import print_json
from tui.core.browser import open_page
from tui.core.errors import UsageError
from tui.core.formatting import plural
from tui.core.messages import object_of
from tui.core.paths import folders, shorten
from tui.core.standard_output import note, print_text
from tui.core.text_cleaning import one_line
from tui.settings import edit, layers, mcp_json, trust
from tui.settings.validation import dotted
from tui.tools.mcp import SETTLED_S, Server, Servers

_ADDRESS = re.compile(r"https?://|\$\{")
_USAGE = "holdfast mcp add NAME -- COMMAND ARGS…, or holdfast mcp add NAME URL"


def run(options: Options) -> int:
    """Carry out `holdfast mcp ACTION`. Returns the exit code."""
    return _ACTIONS[options.action](options)


def _add(options: Options) -> int:
    name = str(options.target)
    file = _file(options, options.mcp.scope or "user")
    edit.add_server(file, name, _server(options))
    note(f"Added {name} to {shorten(file)}. It starts with your next session.")
    if options.mcp.scope == "project":
        root, key = workspace_of(options), dotted(("mcp", name))
        mine = [item for item in trust.items(root) if item.name == key]
        trust.decide(folders(), root, mine, {key})
        note("You trust it in this folder; others are asked first.")
    return 0


def _server(options: Options) -> dict[str, Any]:
    """The entry of `[mcp]` that the words mean. Raises UsageError."""
    if bool(options.mcp.address) == bool(options.mcp.words):
        raise UsageError("Give either an address, or a command behind --.", hint=_USAGE)
    if options.mcp.address is None:
        if options.mcp.headers or options.mcp.type or options.mcp.client_id:
            raise UsageError("--header, --type and --client-id are for an address.", hint=_USAGE)
        command, *args = options.mcp.words
        entry: dict[str, Any] = {"command": command}
        entry |= {"args": args} if args else {}
        return entry | _pairs("env", options.mcp.env, "=")
    if not _ADDRESS.match(options.mcp.address):
        raise UsageError(f"{options.mcp.address} isn't an address.", hint=_USAGE)
    if options.mcp.env:
        raise UsageError("--env is for a command.", hint=_USAGE)
    entry = {"url": options.mcp.address}
    entry |= {"type": options.mcp.type} if options.mcp.type else {}
    entry |= {"client_id": options.mcp.client_id} if options.mcp.client_id else {}
    if options.mcp.callback_port is not None:
        if not options.mcp.client_id:
            raise UsageError("--callback-port goes with --client-id.", hint=_USAGE)
        entry["callback_port"] = options.mcp.callback_port
    return entry | _pairs("headers", options.mcp.headers, "=:")


def _pairs(key: str, given: Iterable[str], between: str) -> dict[str, dict[str, str]]:
    """Read values in the form `K=V` as the table of a key; a header may also be written `K: V`."""
    pairs: dict[str, str] = {}
    for number, text in enumerate(given, 1):
        parts = re.split(f"[{between}]", text, maxsplit=1)
        if len(parts) < 2 or not parts[0].strip():
            flag = "--env" if key == "env" else "--header"
            raise UsageError(f"{flag} number {number} isn't K=V.", hint=_USAGE)
        pairs[parts[0].strip()] = parts[1].strip() if key == "headers" else parts[1]
    return {key: pairs} if pairs else {}


def _list(options: Options) -> int:
    launch = launch_config.prepare(options)
    for notice in launch.notices:
        note(notice)
    servers = make_servers(launch)
    states = asyncio.run(_states(servers)) if servers else []
    there = {one["name"] for one in states}
    states += [_untrusted(one) for one in _brought(workspace_of(options)) if one not in there]
    if options.json:
        return print_json(states)
    for one in states:
        tools = f"  {plural(one['tools'], 'tool')}" if one["state"] == "ready" else ""
        why = one_line(str(one["detail"] or one["address"]))
        print_text(f"{one_line(str(one['name']))}  {one['state']}{tools}  {why}")
        if one["left_out"]:
            print_text(f"  {one_line(str(one['left_out']))}")
    if not states:
        note(f"No MCP servers. Add one: {_USAGE}")
    return 0


def _brought(root: Path) -> list[str]:
    """The names of the servers that a folder's own files have."""
    own = layers.read(layers.project_file(root)).get("mcp")
    return sorted({*object_of(own), *mcp_json.read(root).servers})


def _untrusted(name: str) -> dict[str, Any]:
    """The row of a server of the folder's own that isn't started."""
    why = "not started: you haven't trusted it; --trust starts it"
    row = {"name": name, "state": "untrusted", "detail": why, "address": ""}
    return {**row, "tools": 0, "left_out": ""}


async def _states(servers: Servers) -> list[dict[str, Any]]:
    """The states of the servers once each is ready or has failed. All of them are stopped again."""
    servers.start()
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLED_S):
                await servers.settled()
        return [
            {
                "name": one.name,
                "state": one.state,
                "detail": one.detail,
                "address": one.address,
                "tools": len(one.tools),
                "left_out": one.left_out,
            }
            for one in servers.all
        ]
    finally:
        await servers.close()


def _remove(options: Options) -> int:
    name = str(options.target)
    scopes = (options.mcp.scope,) if options.mcp.scope else ("user", "project")
    for scope in scopes:
        file = _file(options, scope)
        if edit.remove_server(file, name):
            note(f"Removed {name} from {shorten(file)}.")
            return 0
    root, hint = workspace_of(options), "See holdfast mcp list."
    if name in mcp_json.read(root).servers:
        hint = f"It is in {shorten(mcp_json.path_of(root))}: remove it there."
    raise UsageError(f"No config.toml has an MCP server {name}.", hint=hint)


def _login(options: Options) -> int:
    return asyncio.run(_with_server(options, _sign_in))


def _logout(options: Options) -> int:
    return asyncio.run(_with_server(options, _sign_out))


async def _with_server(options: Options, work: Callable[[Server], Awaitable[int]]) -> int:
    """Do something with one server, and stop it. Raises UsageError where there is none."""
    launch = await asyncio.to_thread(launch_config.prepare, options)
    servers = make_servers(launch)
    try:
        for server in servers.all if servers else ():
            if server.name == options.target:
                return await work(server)
    finally:
        if servers is not None:
            await servers.close()
    for notice in launch.notices:
        note(notice)
    raise UsageError(f"No MCP server {options.target} here.", hint="See holdfast mcp list.")


async def _sign_in(server: Server) -> int:
    async def show(address: str) -> None:
        opened = await asyncio.to_thread(open_page, address)
        note("Sign in in your browser. The page is:" if opened else "Open in a browser:")
        print_text(address)
        sys.stdout.flush()
        note("If the browser is on another machine, paste the address that it ends at here.")

    await server.sign_in(show, _pasted)
    await server.connection.settled()
    note(f"Signed in to {server.name}: {server.state}, {plural(len(server.tools), 'tool')}.")
    return 0 if server.state == "ready" else 1


async def _sign_out(server: Server) -> int:
    await server.sign_out()
    note(f"Signed out of {server.name}.")
    return 0


async def _pasted() -> str:
    """A line of the standard input; waits for ever where it has none."""
    loop, line = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()
    typed = bytearray()

    def read() -> None:
        part = os.read(0, 65_536)
        typed.extend(part)
        if not part or b"\n" in part:
            loop.remove_reader(0)
            if typed.strip() and not line.done():
                line.set_result(typed.decode("utf-8", "replace"))

    with suppress(OSError):  # a file, or none at all: nobody types there
        loop.add_reader(0, read)
    try:
        return await line
    finally:
        loop.remove_reader(0)


def _file(options: Options, scope: str) -> Path:
    """The configuration file of a scope."""
    return (
        layers.project_file(workspace_of(options)) if scope == "project" else folders().config_file
    )


_ACTIONS = {"add": _add, "list": _list, "remove": _remove, "login": _login, "logout": _logout}
