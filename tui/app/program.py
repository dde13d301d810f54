"""Wires the full screen: answers what the app asks of the rest of the program."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

import tui
from tui.agent.agent import Agent
from tui.agent.composition import make_agent, reconnect
from tui.agent.launch import Launch, OwnParts
from tui.agent.model_access import (
    asked_model,
    known_model,
    listed_model,
    refresh_models,
    server_name,
    with_whole_names,
)
from tui.app import launch_config
from tui.app.dialog_data import (
    Account,
    KeySetup,
    ModelRow,
    PracticeSetup,
    ProfileRow,
    ProfileSetup,
    ServerSetup,
    SessionRow,
    Setup,
    SetupElsewhere,
    SignInSetup,
)
from tui.app.options.arguments import BatchOptions, Options
from tui.app.services import LiveSettings, Opening, SessionChoice
from tui.app.session_path import session_path
from tui.core import clipboard
from tui.core.clipboard import Clip
from tui.core.clock import SystemClock
from tui.core.config import EVERY_MODEL, model_of, profile_of, through
from tui.core.errors import ConfigError, CredentialsError, HoldfastError, UsageError
from tui.core.facts import Fact
from tui.core.formatting import retirement
from tui.core.messages import string_of
from tui.core.paths import Folders, shorten
from tui.core.web_address import is_api_key
from tui.permissions.rules import Rule
from tui.permissions.types import Approver
from tui.provider import catalogue, model_list
from tui.provider.anthropic import convert
from tui.provider.anthropic.client_factory import shown
from tui.provider.base import ModelInfo
from tui.provider.prices import Payer, price_of
from tui.session import catalog
from tui.session.session import Session
from tui.settings import credentials, edit, trust
from tui.settings.credentials import server_of
from tui.settings.edit import Value
from tui.settings.layers import LoadedSettings, Place, SettingsLayer
from tui.settings.local_servers import LocalServer, probe_local_servers
from tui.settings.profiles import DEFAULT, SESSION, Profile
from tui.settings.trust import Trust, TrustItem
from tui.settings.validation import Key


class Program:
    """The services that front ends ask for, with what may change while one is open: the key, the
    trust, the session.

    `remember_theme` is called with the name of each theme that is chosen, and once a session is
    open. `own` are the parts that come from whoever starts it.
    """

    def __init__(
        self,
        options: Options,
        scratch: Path | None,
        *,
        remember_theme: Callable[[str], None] = lambda _: None,
        own: OwnParts | None = None,
    ) -> None:
        self.options = options
        self.scratch = scratch
        self._remember_theme = remember_theme
        self.launch = replace(launch_config.prepare(options, scratch), own=own or OwnParts())
        self.clock = SystemClock()
        self.version = tui.__version__
        self.settings = LiveSettings(self.launch.config)
        self.session: Session | None = None
        self._trust: Trust | None = None
        self._listed: list[dict[str, Any]] = []
        self._mark: object = None
        """The mark of what was set up when the key was looked for."""
        self._found: Launch | None = None
        """The launch of a program that starts with what another one has set up."""
        self._model_chosen = False
        """True if what was set up has another model, which no open agent uses yet."""
        self._refreshing: asyncio.Task[None] | None = None

    def opening(self) -> Opening:
        """Make the opening state of the screen. Blocks; raises SessionError."""
        options = self.options
        return Opening(
            services=self,
            choice=self.choice(),
            prompt=options.prompt,
            theme=self.launch.config.theme,
            verbose=options.screen.verbose,
        )

    def choice(self) -> SessionChoice | None:
        """The session to begin with; None for the browser. Raises SessionError."""
        named = self.options.opening.resume
        if named == "":
            return None
        if named and catalog.is_path(named):
            from tui.session import importers, naming  # noqa: PLC0415 - for a file only

            home = self.launch.folders
            path = naming.find(named, home)
            inside = home.sessions.resolve() in path.resolve().parents
            if not inside and importers.recognise(path) not in {"ours", None}:
                return SessionChoice(path, foreign=True)
        path, at, message = session_path(self.options), self.options.sessions.at, ""
        if path is not None and at is not None:
            from tui.session.copies import message_at  # noqa: PLC0415 - on demand, as below
            from tui.session.reader import read  # noqa: PLC0415

            message = message_at(read(path), at)
        return SessionChoice(path, message=message, attach=self.options.opening.attach)

    @property
    def folders(self) -> Folders:
        return self.launch.folders

    @property
    def workspace(self) -> Path:
        return self.launch.workspace.root

    @property
    def bare(self) -> bool:
        return self.launch.bare

    def trust(self) -> Trust:
        return self.launch.trust

    def brought(self) -> Sequence[TrustItem]:
        return trust.items(self.workspace)

    def undecided(self) -> Sequence[TrustItem]:
        asking = not (self.options.permissions.trust or self.bare)
        return trust.undecided(self.folders, self.workspace) if asking else ()

    def clipboard(self) -> Clip:
        return clipboard.read()

    async def make_agent(self, choice: SessionChoice, approver: Approver) -> Agent:
        why, hint = "No API key found.", "Paste one, connect a server, or practice offline."
        if choice.path is not None and not (choice.foreign or choice.same):
            await asyncio.to_thread(self._use_profile_of, choice.path)
        await asyncio.to_thread(self._find_key, without=why, hint=hint)
        session = await asyncio.to_thread(self._open, choice)
        agent = await asyncio.to_thread(self._make, session, approver)
        if self.launch.access.short_names and self._refreshing is None:
            self._refreshing = asyncio.create_task(self.refresh_models(), name="list of models")
        self.launch = replace(self.launch, notices=())
        self.session = session
        return agent

    def _use_profile_of(self, session: Path) -> None:
        """Continue with a session's own profile, unless the command line names one.
        Says so where that is another than now. Blocks; raises ConfigError where it is gone."""
        recorded, before = launch_config.recorded_profile(session), self.launch
        if recorded and not self.options.models.profile:
            if recorded == before.access.profile.shown:
                return
            fresh = launch_config.prepare(
                self.options, self.scratch, self._trust, session_profile=recorded
            )
            self._take_up(fresh, found_key=False)
            said = f"Profile {recorded}: this session used it last."
        else:
            said = launch_config.other_profile(recorded, before.access.profile)
        if said and said not in before.notices:
            self.launch = replace(self.launch, notices=(*before.notices, said))

    def run_options(self, tasks: Path) -> Options:
        """The options that work on a task file as this screen would."""
        now, permissions = self.launch, self.options.permissions
        models = replace(self.options.models, profile=now.access.profile.shown)
        return Options(
            command="run",
            cwd=now.workspace.root,
            models=replace(models, practice=now.access.practice, practice_script=now.access.script),
            permissions=replace(permissions, yolo=now.elevated, permission_mode=None, plan=False),
            batch=BatchOptions(tasks=tasks),
        )

    def background_options(self) -> Options:
        """The options of another session in this folder that works as this screen would."""
        now = self.launch
        return self.options.having(
            command="chat",
            cwd=now.workspace.root,
            prompt=None,
            newest=False,
            resume=None,
            no_session=False,
            practice=now.access.practice,
            profile=now.access.profile.shown,
            plain=False,
            attach=False,
        )

    async def list_sessions(self) -> list[SessionRow]:
        return await asyncio.to_thread(self._rows)

    async def set_up(self, setup: Setup) -> str:
        unchecked = await asyncio.to_thread(self._check_setup, setup)  # cancelled: none is kept
        return await asyncio.to_thread(self._set_up, setup) + unchecked

    async def reconnect(self, agent: Agent) -> Sequence[Fact]:
        """Let an agent that is open use what was set up. Raises CredentialsError, UsageError."""
        await asyncio.to_thread(self._find_key)
        keeps, self._model_chosen = not self._model_chosen, False
        return await reconnect(agent, self.launch, self.clock, keeps_model=keeps)

    def connection(self) -> str:
        """Say how a model is reached now, in a sentence. Blocks."""
        launch, home = self.launch, self.launch.folders
        if launch.access.practice:
            return "In use: the practice model."
        if (cloud := launch.access.cloud) is not None:
            return f"In use: {launch.model} at {cloud}, with {cloud.identity}."
        if launch.access.sign_in:
            profile = launch.access.profile
            whose = f" Profile {profile.name}." if profile.name else ""
            return f"Signed in with {launch.access.sign_in}.{whose}"
        server = f" at {shown(launch.base_url)}" if launch.base_url else ""
        profile = launch.access.profile
        server += f", profile {profile.name}" if profile.name else ""
        with suppress(CredentialsError):
            credential = credentials.find_credential(
                os.environ, home, launch.config.base_url, profile=profile
            )
            if isinstance(credential, credentials.ApiKey) and credential.key == launch.access.key:
                words = credentials.in_words(credential, env=os.environ, folders=home)
                return f"In use: {launch.model}{server}, with {words}."
        return f"In use: {launch.model}{server}."

    def set_up_elsewhere(self) -> bool:
        """True once another program has set up another way to reach a model. Blocks."""
        mark, now = credentials.mark_of(os.environ, self.folders), self.launch
        if mark == self._mark:
            return False
        self._mark = mark
        try:
            fresh = self._prepared()
            fresh = replace(fresh, own=now.own).reached(around=now.access.around)
            self._found = found = launch_config.with_key(fresh)
        except HoldfastError:  # another thing was changed, or not all of it is written
            return False
        before = now.access.key, now.access.sign_in, now.base_url
        return (found.access.key, found.access.sign_in, found.base_url) != before

    def _find_key(self, **texts: str) -> None:
        """Find what signs the requests. Blocks; raises CredentialsError with the texts given."""
        self._mark = credentials.mark_of(os.environ, self.folders)
        self.launch = launch_config.with_key(self.launch, **texts)

    def account(self) -> Account:
        """The profile in use, and what can be used in its place. Blocks."""
        config, name = self.launch.config, self._own_profile
        server = ServerSetup(config.base_url, config.model, "") if config.base_url else None
        sign_in, others = None, False
        with suppress(CredentialsError):
            sign_in = credentials.saved_profile(os.environ)
        with suppress(ConfigError):
            others = bool(self.read_settings().profiles)
        return Account(name, server if name else None, sign_in.profile if sign_in else "", others)

    def profiles(self) -> Sequence[ProfileRow]:
        """The person's profiles, "default" first. Blocks; raises ConfigError."""
        names = self.read_settings().profiles
        return [self._profile_row(name) for name in (DEFAULT, *names)] if names else []

    def _profile_row(self, name: str) -> ProfileRow:
        now = self.launch
        loaded = launch_config.read_settings(
            self._of_no_account(), now.folders, now.workspace.root, now.trust, session_profile=name
        )
        launch = replace(now, config=loaded.config).with_key(None)
        cloud = launch_config.cloud_of(loaded.config)
        launch = with_whole_names(
            launch.reached(cloud=cloud, profile=loaded.profile, practice=False)
        )
        return ProfileRow(
            name,
            launch.model,
            str(cloud) if cloud else shown(server_of(launch.base_url)),
            cloud.identity if cloud else _key_words(loaded.profile),
            Payer(loaded.profile.name, server_name(launch), loaded.config.prices),
            listed_model(launch, launch.model).window,
            now=name == now.access.profile.shown,
        )

    async def probe_servers(self) -> Sequence[LocalServer]:
        return await probe_local_servers()

    def asked_model(self, name: str) -> ModelInfo | None:
        return asked_model(self.launch, name)

    async def model_info(self, name: str) -> ModelInfo:
        return known_model(self.launch, name)

    def whole_name(self, name: str) -> str:
        """The model that a short name stands for. Blocks."""
        return self.launch.whole_name(name)

    async def refresh_models(self) -> None:
        """Ask the server for its models where that is due, and take what it listed last."""
        await refresh_models(self.launch, self.clock)
        home, url = self.launch.folders, self.launch.base_url
        self._listed = await asyncio.to_thread(model_list.listed, home.cache, url)

    def models(self) -> list[ModelRow]:
        """The models of the configuration, then those that the server listed; where it was never
        asked, those of the catalogue that may be there."""
        config = self.launch.config
        priced = (name for name in config.prices if name != EVERY_MODEL and not profile_of(name))
        fallbacks = [self._whole_fallback(name) for name in config.fallback_models]
        named = [config.model, *fallbacks, config.small_model, *priced]
        by_id = {string_of(model.get("id")): model for model in self._listed}
        if by_id:
            named += (name for name in by_id if by_id[name].get("lifecycle") != "retired" and name)
        elif self.launch.access.cloud is not None or not config.base_url:
            named += catalogue.names()
        if self.launch.access.practice:
            named = [self.launch.model, *fallbacks]
        ranks = {name: rank for rank, name in enumerate(fallbacks, 1)}
        rows: list[ModelRow] = []
        for name in dict.fromkeys(named):
            known, price = known_model(self.launch, name), price_of(name, config.prices)
            if name in by_id and known.source != "config":
                known = convert.model_info(name, by_id[name])
            rank, goes = ranks.get(name, 0), retirement(known.retires_at, self.clock.now())
            short, rates = (price.short, price.words) if price else ("", "")
            rows.append(
                ModelRow(
                    name,
                    known.window,
                    known.source,
                    short,
                    rates,
                    fallback=rank,
                    retires=goes,
                )
            )
        return rows

    def _whole_fallback(self, name: str) -> str:
        """A fallback's whole name: a profile alone stands for the model through it."""
        return name if model_of(name) else through(profile_of(name), self.launch.model)

    async def save_theme(self, name: str) -> None:
        await asyncio.to_thread(edit.set_user_value, self.launch.folders, "theme", name)
        self._remember_theme(name)

    async def decide_trust(self, about: Sequence[TrustItem], granted: Collection[str]) -> None:
        """The answer holds for this run even where it cannot be kept (StorageError)."""
        home, root = self.launch.folders, self.launch.workspace.root
        names = {item.name: item.sha256 for item in about if item.name in granted}
        asked = {item.name for item in about}
        before = {n: sha for n, sha in self.launch.trust.granted.items() if n not in asked}
        self.options = self.options.having(trust=False)
        self._trust = Trust(granted=before | names)
        try:
            await asyncio.to_thread(trust.decide, home, root, about, granted)
        finally:
            await asyncio.to_thread(self._reload)

    def read_settings(self) -> LoadedSettings:
        """The settings as all layers say now. Blocks; raises ConfigError."""
        now = self.launch
        return launch_config.read_settings(
            self.options,
            now.folders,
            now.workspace.root,
            now.trust,
            session_profile=self._session_profile(),
        )

    def _session_profile(self) -> str:
        """The profile in use, once a session was opened with it: what the files say meanwhile
        counts from the next start on."""
        profile = self.launch.access.profile
        opened = self.session is not None or profile.chosen_by == SESSION
        return profile.shown if opened else ""

    async def use_settings(self) -> None:
        """New sessions begin with the settings as they are now. Raises UsageError."""
        await asyncio.to_thread(self._use_settings)

    def _use_settings(self) -> None:
        now, fresh = self.launch, self._prepared()
        self.launch = replace(now, config=fresh.config, workspace=fresh.workspace)
        access = fresh.access
        self.launch = self.launch.reached(
            cloud=access.cloud,
            profile=access.profile,
            foreign_server=access.foreign_server,
            others=access.others,
        )
        if not _same_server(fresh, now):
            self.launch = self.launch.with_key(None)  # a key is for the server it was given for
        if fresh.config.theme != now.config.theme:
            self._remember_theme(fresh.config.theme)

    def _reload(self) -> None:
        """Read the configuration again; what was chosen meanwhile stays."""
        self._take_up(self._prepared(), found_key=True)

    def _prepared(self) -> Launch:
        """The launch as all files say now, with the profile in use. Blocks; raises ConfigError."""
        profile = self._session_profile()
        return launch_config.prepare(
            self.options, self.scratch, self._trust, session_profile=profile
        )

    def _take_up(self, fresh: Launch, *, found_key: bool) -> None:
        """Use a launch, with what was chosen meanwhile; with the key only if that is still its
        own."""
        access, same = self.launch.access, _same_server(fresh, self.launch)
        key, sign_in = (access.key, access.sign_in) if found_key and same else (None, None)
        self.launch = replace(fresh, own=self.launch.own).reached(
            key=key, sign_in=sign_in, practice=access.practice, around=access.around
        )

    def _open(self, choice: SessionChoice) -> Session:
        if choice.path is not None:
            return Session.open(
                choice.path,
                clock=self.clock,
                take_over=choice.take_over,
                read_only=choice.read_only,
            )
        return launch_config.new_session(self.options, self.launch, self.clock)

    def _make(self, session: Session, approver: Approver) -> Agent:
        """In a thread: of a long session it counts the tokens and builds the view."""
        if self.session is None:  # from now on the first frame knows that a model is connected
            self._remember_theme(self.launch.config.theme)

        def remember(rule: Rule) -> None:
            edit.remember_always(self.launch.folders, str(rule))

        agent = make_agent(
            self.launch, session, approver, clock=self.clock, remember_always=remember
        )
        agent.context.view()  # looked at once, it costs later what comes since
        agent.spending()  # so does this
        return agent

    def _rows(self) -> list[SessionRow]:
        from tui.app.session_repository import SessionRepository  # noqa: PLC0415 - on demand

        home, root = self.launch.folders, self.launch.workspace.root
        return SessionRepository(home, root, self.clock, Path.home()).ours(everywhere=False)

    def _check_setup(self, setup: Setup) -> str:
        """Check a key by its form and by the smallest request there is. Returns a sentence if no
        server answers. Blocks up to 3 s; raises CredentialsError, and as `_check_server`."""
        from tui.app.doctor.setup import ask_for_models  # noqa: PLC0415 - for a new key only

        match setup:
            case KeySetup(given):
                base_url, key = "", credentials.anthropic_key(given)
            case ServerSetup(base_url, model, given):
                if is_api_key(model):
                    raise CredentialsError("This is a key, not the name of a model.")
                key = credentials.valid_key(given) if given else None
            case _:
                return ""
        self._check_server(base_url)
        server = server_of(base_url)
        status, why = ask_for_models(server, key)
        if key and status == HTTPStatus.UNAUTHORIZED:
            raise CredentialsError(
                f"{shown(server)} rejects this key.", hint="Check it, or enter another one."
            )
        if status is None:
            return f" Not checked: {shown(server)} can't be reached ({why})."
        return ""

    def _set_up(self, setup: Setup) -> str:
        match setup:
            case ProfileSetup(name):
                return self._use_profile(name)
            case PracticeSetup():
                self.launch = self.launch.reached(practice=True)
                return "The practice model works offline. It follows rules and says so."
            case SignInSetup(name):
                if (profile := credentials.saved_profile(os.environ)) is None:
                    raise CredentialsError(
                        f"The sign-in {name} is gone.", hint="Run `ant auth login`."
                    )
                mine = self._own_profile
                self._use_server("", "")
                home = self.launch.folders
                credentials.forget_key("", env=os.environ, folders=home, profile=mine)
                self._sign_by(sign_in=name)
                self.launch = self.launch.signed_by(profile).reached(practice=False)
                return f"Signed in with {profile}.{self._next_start()}"
            case SetupElsewhere():
                self.launch = self._found or self.launch
                return f"Set up in another window. {self.connection()}"
            case KeySetup(key):
                return self._use_key(key.strip(), "", "")
            case ServerSetup(base_url, model, key):
                return self._use_key(key.strip(), base_url, model)

    def _use_profile(self, name: str) -> str:
        """Use another profile, in the place of the one that the command line or the session names.
        What was done, in a sentence. Blocks; raises ConfigError, UsageError and CredentialsError,
        and then nothing has changed."""
        options, own = self._of_no_account(), self.launch.own
        fresh = launch_config.prepare(options, self.scratch, self._trust, session_profile=name)
        around = self.launch.access.around
        fresh = replace(fresh, own=own, notices=()).reached(around=around, practice=False)
        mark = credentials.mark_of(os.environ, self.folders)
        self.launch = launch_config.with_key(fresh)
        self.options, self._mark, self._listed = options, mark, []
        return f"Using profile {name}."

    def _of_no_account(self) -> Options:
        """The options without what the command line says of one account: the profile, and the names
        of its models."""
        return self.options.having(profile=None, model=None, fallback_models=())

    def _use_key(self, key: str, base_url: str, model: str) -> str:
        """Store a key for a server that takes it, and use both. What was done, in a sentence."""
        home = self.launch.folders
        self._check_server(base_url)
        if not key:
            self._use_server(base_url, model)
            self._sign_by(key_from="none")
            self.launch = self.launch.with_key(None).reached(practice=False)
            return f"Using {model} at {shown(base_url)}; saved in {shorten(home.config_file)}."
        mine = self._own_profile
        place = credentials.store_key(key, base_url, env=os.environ, folders=home, profile=mine)
        self._use_server(base_url, model)
        self._sign_by()
        self.launch = self.launch.with_key(key).reached(practice=False)
        where = shorten(credentials.credentials_file(home)) if place == "file" else "the keyring"
        whose = f" of profile {mine}" if mine else ""
        return f"Saved the key{whose} in {where}.{self._next_start()}"

    @property
    def _own_profile(self) -> str:
        """The profile in use, "" for none."""
        return self.launch.access.profile.name

    def _sign_by(self, *, key_from: str | None = None, sign_in: str | None = None) -> None:
        """Let the profile in use be signed by what is stored for it, or by what is given. Raises as
        `change_settings`."""
        if name := self._own_profile:
            given = {"key_from": key_from, "sign_in": sign_in}
            changes = {("profile", name, key): value for key, value in given.items()}
            if edit.change_settings(self.launch.folders, changes):
                self._reload()

    def _next_start(self) -> str:
        """Add what the environment changes when the program is started again."""
        name = credentials.key_variable(os.environ)
        first = bool(name) and not self.launch.access.profile.has_own_key
        return f" {name} still comes first at the next start." if first else ""

    def _use_server(self, base_url: str, model: str) -> None:
        """Make a server the person's own setting, and its model; without a `model` the usual one
        takes the place of another server's. Raises as `_check_server`."""
        self._check_server(base_url)
        before, home = self.launch.config, self.launch.folders
        if not (base_url or before.base_url):
            return
        at = ("profile", self._own_profile) if self._own_profile else ()
        below = at and any("base_url" in one.table for one in self._layers("user"))
        changes: dict[Key, Value | None] = {(*at, "base_url"): base_url or ("" if below else None)}
        if model or before.base_url:
            changes[(*at, "model")] = model or None
        edit.change_settings(home, changes)
        self._reload()
        self._model_chosen = self.launch.config.model != before.model

    def _layers(self, place: Place) -> list[SettingsLayer]:
        return [one for one in self.read_settings().layers if one.place == place]

    def _check_server(self, base_url: str) -> None:
        """Raises UsageError where the settings choose a cloud, or something above the person's own
        settings names another server: a key would be sent there."""
        if (cloud := self.launch.access.cloud) is not None:
            home = self.launch.folders
            raise UsageError(
                f"Your settings choose {cloud.cloud.title}, which takes no key.",
                hint=f"Remove kind under [provider] in {shorten(home.config_file)} to use a key or"
                " another server.",
            )
        loaded = self.read_settings()
        others = (one for one in loaded.layers if one.place not in {"user", "profile"})
        above = [one.name for one in others if "base_url" in one.table]
        now = loaded.config.base_url
        if above and server_of(now) != server_of(base_url):
            raise UsageError(
                f"{above[-1]} sets the server to {shown(now)}.",
                hint="Remove that, or enter that server's address and key.",
            )


def _key_words(profile: Profile) -> str:
    """Say whose key signs with a profile."""
    if profile.sign_in:
        return f"sign-in {profile.sign_in}"
    if profile.key_from == "none":
        return "no key"
    return "its own key" if profile.has_own_key else "your usual key"


def _same_server(one: Launch, other: Launch) -> bool:
    """True if both name the same server, and the same side names it: then a key is for both."""
    servers = {(each.config.base_url, each.access.foreign_server) for each in (one, other)}
    return len(servers) == 1
