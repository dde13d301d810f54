"""From the command line to an agent's ingredients: folder, configuration, key, session."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from msgspec import structs

from tui.agent.launch import BARE, BARE_HINT, Access, Launch
from tui.agent.limits import Limits
from tui.agent.model_access import with_whole_names
from tui.app.options.arguments import Options
from tui.app.session_path import folder_of, session_path, workspace_of
from tui.context.system_prompt import Source
from tui.core import log
from tui.core.clock import Clock
from tui.core.config import Config, model_of, profile_of, through
from tui.core.errors import ConfigError, CredentialsError, HoldfastError, UsageError
from tui.core.paths import Folders, folders, shorten, workspace_slug
from tui.core.workspace import Workspace, worktree_of
from tui.permissions.types import Mode
from tui.provider.prices import price_of
from tui.session.session import Session
from tui.settings import credentials
from tui.settings import layers as settings
from tui.settings.layers import LoadedSettings
from tui.settings.profiles import Profile, UnknownProfileError
from tui.settings.trust import Trust, trust_of

if TYPE_CHECKING:
    from tui.core.clouds import CloudAccess

MAX_WAIT_S = 600.0
"""Seconds that `-p` waits for a server's limits, when --max-wait does not say."""

MODES: Final[Mapping[str, Mode]] = {"ask": "ask", "edits": "accept_edits", "plan": "plan"}
"""The mode of a session by its name on the command line."""

_KEY_HINT = (
    "Set ANTHROPIC_API_KEY, sign in with `ant auth login`, run `holdfast` to store a key, or try"
    " --practice."
)


_PROFILE_HINT = (
    'Run `holdfast --profile {0}` to enter one. key_from = "default" in its table uses the key'
    " that counts without a profile."
)


def prepare(
    options: Options,
    scratch: Path | None = None,
    trusted: Trust | None = None,
    *,
    home: Folders | None = None,
    settled: Mapping[str, Any] | None = None,
    foreign: bool = False,
    session_profile: str = "",
) -> Launch:
    """Read everything that decides how to run. Blocks; raises ConfigError or UsageError.

    `scratch` takes the full tool results of a run that keeps nothing; `trusted` is what the person
    said in this run, in the place of what is kept; `home` are the program's folders, None for the
    usual ones. `settled` are settings that count whatever a file says; `foreign`: a folder named
    the server that is among them. `session_profile` is the profile of the session to resume; where
    it is "", that of the session which the options name counts. The key is not looked for here: a
    keyring may take seconds, and a screen must not wait.
    """
    home = home or _home()
    log.to_file(home.log, debug=options.screen.verbose)
    root = workspace_of(options)
    if options.permissions.trust:
        trusted = Trust(everything=True)
    trusted = trusted or trust_of(home, root)
    recorded = "" if session_profile else _profile_of_options(options)
    loaded = read_settings(
        options, home, root, trusted, settled=settled, session_profile=session_profile or recorded
    )
    if options.models.practice_script is not None:
        from tui.provider.practice.script import read_script  # noqa: PLC0415 - seldom needed

        read_script(
            options.models.practice_script
        )  # a broken one is reported before anything opens
    wait = options.limits.max_wait
    extra = tuple(folder_of(folder, "--add-dir") for folder in options.permissions.add_dirs)
    ceiling = loaded.config.permissions.ceiling
    spare = home.outputs / workspace_slug(root)
    workspace = Workspace.at(root, extra=extra, ceiling=ceiling, scratch=scratch, spare=spare)
    if worktree_of(root):  # it may be removed, and the record outlives it
        workspace = replace(workspace, spare=spare)
    launch = Launch(
        workspace=workspace,
        config=loaded.config,
        folders=home,
        access=Access(
            practice=options.models.practice,
            script=options.models.practice_script,
            profile=loaded.profile,
            foreign_server=foreign or loaded.foreign_server or loaded.profile.has_own_server,
            cloud=cloud_of(loaded.config),
        ),
        elevated=options.permissions.yolo,
        rules_lost=loaded.rules_lost,
        mode=MODES[
            "plan" if options.permissions.plan else options.permissions.permission_mode or "ask"
        ],
        texts=_texts(options),
        verbose=options.screen.verbose,
        effort=options.models.effort or "",
        limits=Limits(options.limits.max_turns, options.limits.max_tokens, options.limits.max_cost),
        max_wait_s=MAX_WAIT_S if options.printing.headless and wait is None else wait,
        notices=(
            *options.notices,
            *([BARE] if options.permissions.bare else ()),
            *_brought_back(home),
            *settings.ignored_words(loaded.ignored),
            *_foreign_server(loaded),
            *filter(None, (other_profile(recorded, loaded.profile),)),
        ),
        one_turn=options.printing.headless,
        trust=trusted,
        confined=True,
        bare=options.permissions.bare,
    )
    launch = with_whole_names(with_other_profiles(launch, options))
    if options.limits.max_cost is not None and price_of(launch.model, loaded.config.prices) is None:
        raise UsageError(
            f"--max-cost needs a price for {launch.model}, and none is set.",
            hint=f'Add one under [prices."{launch.model}"] in {shorten(home.config_file)}, or use '
            "--max-tokens.",
        )
    return launch


def with_other_profiles(
    launch: Launch, options: Options, fallbacks: Sequence[str] | None = None
) -> Launch:
    """The same with a launch through each other profile that its fallbacks name; None are those of
    the settings. Those of the profile in use get their plain names. Blocks; raises ConfigError."""
    named = launch.config.fallback_models if fallbacks is None else tuple(fallbacks)
    if launch.access.practice or not any(map(profile_of, named)):
        named = tuple(one for one in named if not profile_of(one))
        return replace(launch, config=structs.replace(launch.config, fallback_models=named))
    used, others = launch.access.profile.shown, dict[str, Launch]()
    whole: list[str] = []
    for one in named:
        profile, model = profile_of(one), model_of(one)
        if profile in {"", used}:
            whole += [model] if model else []
            continue
        own = options.having(profile=profile, model=None, fallback_models=())
        loaded = read_settings(own, launch.folders, launch.workspace.root, launch.trust)
        others[profile] = through_profile(launch, loaded)
        has_model = any("model" in at.table for at in loaded.layers if at.place == "profile")
        whole.append(through(profile, model or (loaded.config.model if has_model else "")))
    config = structs.replace(launch.config, fallback_models=tuple(whole))
    return replace(launch, config=config).reached(others=others)


def through_profile(launch: Launch, loaded: LoadedSettings) -> Launch:
    """The same launch with the settings, the server and the account of another profile; its key
    isn't looked for. Blocks."""
    access = Access(
        profile=loaded.profile,
        foreign_server=loaded.foreign_server or loaded.profile.has_own_server,
        cloud=cloud_of(loaded.config),
        around=launch.access.around,
    )
    return with_whole_names(replace(launch, config=loaded.config, access=access, notices=()))


def cloud_of(config: Config) -> CloudAccess | None:
    """The way to the cloud that the settings name; None where they name none."""
    if config.provider.kind == "anthropic":
        return None
    from tui.core.clouds import access_of  # noqa: PLC0415 - few have one

    return access_of(config, os.environ)


@contextmanager
def scratch_of(options: Options) -> Generator[Path | None]:
    """A private folder, removed at the end, for a run that keeps nothing; None for others."""
    if not options.opening.no_session:
        yield None
        return
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - seldom needed, slow to load

    with TemporaryDirectory(prefix="holdfast-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def with_key(
    launch: Launch, *, without: str = "No API key found.", hint: str = _KEY_HINT
) -> Launch:
    """The same with what signs the requests to the configured server. Blocks up to 2 s.

    Raises CredentialsError, with the texts given, where there is nothing and nothing can be asked
    without: only the API itself insists on it.
    """
    launch = _with_other_keys(launch) if launch.others else launch
    access, url = launch.access, launch.config.base_url
    if access.key or access.sign_in or access.practice:
        return launch
    if access.cloud is not None:
        if launch.one_turn:  # on a screen, the first request says it, and can be sent again
            access.cloud.check()
        return launch
    credential = credentials.find_credential(
        os.environ, launch.folders, url, foreign=access.foreign_server, profile=access.profile
    )
    profile = access.profile
    if credential or profile.key_from == "none" or (url and not profile.has_own_key):
        return launch.signed_by(credential)
    if profile.has_own_key:
        server = urlsplit(credentials.server_of(url)).netloc.rpartition("@")[2]
        name = credentials.key_variable(os.environ)
        why = f" {name} isn't used with a profile." if name else ""
        without = f"Profile {profile.name} has no key for {server}.{why}"
        import shlex  # noqa: PLC0415 - only on error

        hint = _PROFILE_HINT.format(shlex.quote(profile.name)) if hint == _KEY_HINT else hint
    raise CredentialsError(without, hint=hint)


def _with_other_keys(launch: Launch) -> Launch:
    """The same with what signs the requests through other profiles. One that has nothing is never
    asked, and named in a notice: the session works without it. Blocks."""
    others, notices = dict[str, Launch](), list[str]()
    named = launch.config.fallback_models
    for name, other in launch.others.items():
        if not any(profile_of(one) == name for one in named):
            continue
        try:
            others[name] = with_key(replace(other, one_turn=True))
        except CredentialsError as error:
            notices.append(f"Skipping the fallback @{name}. {error.message} {error.hint}".rstrip())
    there = {"", *others}
    asked = tuple(one for one in named if profile_of(one) in there)
    config = structs.replace(launch.config, fallback_models=asked)
    notices = [*launch.notices, *notices]
    return replace(launch, config=config, notices=tuple(notices)).reached(others=others)


def _profile_of_options(options: Options) -> str:
    """The profile of the session that the options name; "" where they name none. Blocks."""
    with suppress(HoldfastError, OSError):
        if path := session_path(options):
            return recorded_profile(path)
    return ""


def recorded_profile(session: Path) -> str:
    """The profile that a session used last, "default" for none; "" where that isn't known. What
    is wrong with the file is said when it is opened. Blocks."""
    from tui.session.profile_record import profile_of  # noqa: PLC0415 - few are resumed

    with suppress(HoldfastError, OSError):
        return profile_of(session)
    return ""


def config_for(options: Options, session: Path, *, strictly: bool = False) -> Config:
    """The settings with the profile of a session that is there, such as its prices; those without
    one where that is gone, unless `strictly`. Blocks; raises ConfigError."""
    try:
        return prepare(options, session_profile=recorded_profile(session)).config
    except ConfigError:
        if strictly:
            raise
        return prepare(options).config


def other_profile(recorded: str, now: Profile) -> str:
    """Say that a session continues with another profile than it used last; "" where it
    doesn't."""
    if not recorded or recorded == now.shown:
        return ""
    return f"This session used profile {recorded} last; {now.chosen_by} names {now.shown}."


def new_session(
    options: Options, launch: Launch, clock: Clock, *, unattended: str = "background"
) -> Session:
    """A new session, in memory only where nothing is to be kept. `unattended` is what a process
    without a screen is. Raises SessionError."""
    root = launch.workspace.root
    if options.opening.no_session:
        return Session.in_memory(root, clock=clock)
    started = unattended if options.printing.headless else ""
    return Session.create(
        root,
        folders=launch.folders,
        clock=clock,
        started=started,
        profile=launch.config.profile,
    )


def read_settings(
    options: Options,
    home: Folders,
    root: Path,
    trusted: Trust,
    *,
    settled: Mapping[str, Any] | None = None,
    session_profile: str = "",
) -> LoadedSettings:
    """Read the settings that are in force for the options. Blocks; raises ConfigError and
    UsageError. What is `settled` counts whatever a file says; `session_profile` is that of the
    session to resume."""
    overrides = {**(settled or {}), **options.overrides}
    if options.permissions.bare:
        from tui.settings import bare  # noqa: PLC0415 - seldom wanted

        return bare.load(
            folders=home,
            workspace=root,
            env=os.environ,
            overrides=overrides,
            session_profile=session_profile,
            asks_server=not options.models.practice,
            elevated=options.permissions.yolo,
        )
    try:
        return settings.load(
            folders=home,
            workspace=root,
            allows=trusted.allows,
            env=os.environ,
            overrides=overrides,
            session_profile=session_profile,
        )
    except ConfigError as error:
        if options.command == "chat" and not isinstance(error, UnknownProfileError):
            error.hint = f"{error.hint} {BARE_HINT}".strip()
        raise


def _brought_back(home: Folders) -> tuple[str, ...]:
    """Bring back files that a crash left half written. Makes the person's notices of them."""
    if not home.in_place.is_dir():
        return ()
    from tui.core.in_place import bring_back  # noqa: PLC0415 - hardly ever needed

    return tuple(
        f"{shorten(one.path)} was half written when Holdfast stopped. Its old content is back."
        if one.restored
        else f"{shorten(one.path)} may have been half written when Holdfast stopped. It has"
        " changed since, so Holdfast left it alone."
        for one in bring_back()
    )


def _texts(options: Options) -> tuple[Source, ...]:
    """The texts of the command line for the system prompt."""
    sources = (
        Source("own", "--system-prompt", options.models.system_prompt or ""),
        Source("added", "--append-system-prompt", options.models.append_system_prompt or ""),
    )
    return tuple(source for source in sources if source.text.strip())


def _foreign_server(loaded: LoadedSettings) -> tuple[str, ...]:
    """Make the person's notice where the folder names the server and the environment has a key."""
    keys = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS")
    names = " and ".join(name for name in keys if os.environ.get(name))
    if not (loaded.foreign_server and names):
        return ()
    server = urlsplit(loaded.config.base_url).netloc.rpartition("@")[2]
    why = f"Your environment's {names} won't be sent to {server}"
    return (f"{why}: this folder's settings name that server. A key you store for it will be.",)


def _home() -> Folders:
    named = os.environ.get("HOLDFAST_HOME")
    if named and (place := Path(named).expanduser()).exists() and not place.is_dir():
        raise UsageError(
            f"HOLDFAST_HOME ({named}) isn't a folder.",
            hint="Set it to a folder; Holdfast creates it if needed.",
        )
    return folders()
