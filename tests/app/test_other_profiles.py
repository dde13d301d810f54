"""Going on through another profile: whose server, key and price each request has, and back."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.app.test_error_options import Chooser, until
from tests.app.test_profiles import HOME, WORK, ask, asked, opened, write
from tests.support import clouds
from tests.support.clouds import CloudServer
from tests.support.server import LoopbackServer
from tui.agent.limits import session_cost
from tui.app import launch_config
from tui.app.conversation import Conversation
from tui.app.error_options import offer_recovery
from tui.app.open_session import open_first
from tui.app.options.arguments import Options
from tui.app.program import Program
from tui.app.services import SessionChoice
from tui.context.request_replay import RequestReplay
from tui.context.usage import bills_in
from tui.core.config import Config
from tui.core.errors import ConfigError
from tui.core.facts import CompactionFinished, ErrorRaised, ModelSwitched, Notice
from tui.core.messages import Usage
from tui.core.paths import folders
from tui.provider import failover
from tui.provider.prices import price_of
from tui.session.reader import read
from tui.settings import credentials
from tui.settings.layers import own_prices, project_file

OPUS = "claude-opus-5-5"
CHECKED = {"catalogue": True, "signatures": False, "priced": True}
THINKS = {"thinking": "Hm, let me see.", "text": "ok"}
BUSY = {**THINKS, "faults": [{"status": 529, "type": "overloaded_error"}]}


@asynccontextmanager
async def api_and_bedrock(
    monkeypatch: pytest.MonkeyPatch, api: list[Any], bedrock: list[Any], more: str = ""
) -> AsyncGenerator[tuple[LoopbackServer, CloudServer]]:
    """The API's double with a key, and Bedrock's as the profile aws, which the API falls back
    to."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", clouds.ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", clouds.SECRET_KEY)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    async with (
        LoopbackServer({**CHECKED, "turns": api, "keys": [HOME]}) as first,
        CloudServer("bedrock", {**CHECKED, "turns": bedrock}) as cloud,
    ):
        write(
            f"""
            titles = "prompt"
            base_url = "{first.url}"
            api_features = "all"
            model = "{OPUS}"
            fallback_models = ["@aws"]
            {more}
            [retry]
            max_attempts = 0
            [profile.aws]
            base_url = "{cloud.base_url}"
            api_features = "auto"
            [profile.aws.provider]
            kind = "bedrock"
            region = "us-east-1"
            """
        )
        credentials.store_key(HOME, first.url, env=os.environ, folders=folders())
        yield first, cloud


async def test_bedrock_answers_while_the_api_is_overloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [THINKS, BUSY], [THINKS] * 2
    async with api_and_bedrock(monkeypatch, *turns) as (first, cloud):
        async with opened(Options(cwd=tmp_path)) as (_, agent, _facts):
            await ask(agent)
            facts = await ask(agent, "and now?")
            switched = next(one for one in facts if isinstance(one, ModelSwitched))
            await ask(agent, "and again?")
            path = agent.session.path
        assert path is not None
        assert cloud.refused == []
    assert (switched.old, switched.new) == (OPUS, f"@aws/{OPUS}")
    assert (switched.error_class, switched.thoughts) == ("overloaded", 1)
    assert switched.again
    records = read(path).records
    models = [one.data["model"] for one in records if one.type == "assistant"]
    assert models == [OPUS, f"@aws/{OPUS}", f"@aws/{OPUS}"]
    assert asked(first) == [HOME] * 2, "it rests for a minute"
    assert [body["model"] for body in cloud.entered] == [f"anthropic.{OPUS}"] * 2


async def test_each_request_is_priced_by_its_own_profile_in_every_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [THINKS, BUSY], [THINKS]
    async with (
        api_and_bedrock(monkeypatch, *turns),
        opened(Options(cwd=tmp_path)) as (program, agent, _facts),
    ):
        for text in ("hello", "and now?"):
            await ask(agent, text)
        config, shown = program.launch.config, agent.spending().session.usd
        path = agent.session.path
    assert path is not None
    records = read(path).records
    usages = [Usage.from_json(one.data["usage"]) for one in records if one.type == "assistant"]
    price = price_of(OPUS, {})
    assert price is not None
    whole = price.cost(usages[0]) + 1.1 * price.cost(usages[1])
    assert shown == pytest.approx(whole)  # pyright: ignore[reportUnknownMemberType]
    assert session_cost(records, config.prices).session.usd == pytest.approx(whole)  # pyright: ignore[reportUnknownMemberType]
    (billed,) = bills_in(folders())
    assert [(bill.profile, bill.model) for bill in billed.bills] == [
        ("", OPUS),
        ("aws", f"@aws/{OPUS}"),
    ]
    tables = own_prices(folders(), os.environ)
    prices = [bill.price(tables.get(bill.profile, tables[""])) for bill in billed.bills]
    costs = [p.cost(b.usage) for p, b in zip(prices, billed.bills, strict=True) if p]
    assert sum(costs) == pytest.approx(whole)  # pyright: ignore[reportUnknownMemberType]


async def test_thinking_and_features_stay_at_the_server_that_knows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with api_and_bedrock(monkeypatch, [THINKS, BUSY], [THINKS]) as (first, cloud):
        async with opened(Options(cwd=tmp_path)) as (_, agent, _facts):
            for text in ("hello", "and now?"):
                await ask(agent, text)
            path = agent.session.path
        sent = json.dumps(cloud.entered) + json.dumps([one.headers for one in cloud.requests])
        for one in ("diagnostics", "thinking-binding", "block_binding", "1h", "Hm, let me", HOME):
            assert one not in sent
        assert "web_search" not in json.dumps([one.body for one in first.posts]), (
            "a search would be in what aws gets"
        )
    assert path is not None
    assert [one.problem for one in RequestReplay(read(path).records).every()] == [""] * 3


async def test_the_first_is_asked_again_after_its_rest_with_its_own_thinking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(failover.REST_S, "overloaded", 0.0)
    async with api_and_bedrock(monkeypatch, [THINKS, BUSY, THINKS], [THINKS]) as (first, cloud):
        async with opened(Options(cwd=tmp_path)) as (_, agent, _facts):
            for text in ("hello", "and now?"):
                await ask(agent, text)
            facts = await ask(agent, "and then?")
        back = next(one for one in facts if isinstance(one, ModelSwitched))
        assert (back.old, back.new, back.error_class) == (f"@aws/{OPUS}", OPUS, None)
        assert len(cloud.entered) == 1
        thoughts = [
            block["type"]
            for message in first.posts[-1].body["messages"]
            for block in message["content"]
            if block["type"] == "thinking"
        ]
        assert thoughts == ["thinking"], "that of the API; aws' own stays there"


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 500, "type": "api_error"},
        {"cut_after": 3},
    ],
)
async def test_what_would_recur_at_the_same_server_goes_through_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: dict[str, Any]
) -> None:
    failing = [{**THINKS, "faults": [fault]}]
    async with api_and_bedrock(monkeypatch, failing, [THINKS]) as (_, cloud):
        async with opened(Options(cwd=tmp_path)) as (_, agent, _facts):
            facts = await ask(agent)
        assert len(cloud.entered) == 1
    assert not [one for one in facts if isinstance(one, ErrorRaised)]


@pytest.mark.parametrize("fault", ["throttled", "unknown-model", "expired", "stream"])
async def test_where_both_are_down_the_first_ones_error_names_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    cut = {**THINKS, "faults": [{"cut_after": 3}]}
    async with api_and_bedrock(monkeypatch, [BUSY], [cut]) as (_, cloud):
        if fault != "stream":
            cloud.faults = [fault]
        async with opened(Options(cwd=tmp_path)) as (_, agent, _facts):
            facts = await ask(agent)
    error = next(one for one in facts if isinstance(one, ErrorRaised))
    assert error.error_class == "overloaded"
    assert f"Tried too: @aws/{OPUS} (" in error.hint


@pytest.mark.parametrize("named", ["@work", f"@work/{OPUS}", f"@work/{OPUS}-other"])
async def test_two_accounts_of_one_kind_never_share_a_key_or_a_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-of-home: secret")
    async with (
        LoopbackServer({"turns": [BUSY], "keys": [HOME]}) as home,
        LoopbackServer({"turns": [THINKS], "keys": [WORK]}) as work,
    ):
        write(
            f"""
            titles = "prompt"
            base_url = "{home.url}"
            model = "{OPUS}"
            [retry]
            max_attempts = 0
            [profile.work]
            base_url = "{work.url}"
            [profile.work.prices."{OPUS}"]
            input = 100.0
            output = 0.0
            """
        )
        place = folders()
        credentials.store_key(HOME, home.url, env=os.environ, folders=place)
        credentials.store_key(WORK, work.url, env=os.environ, folders=place, profile="work")
        options = Options(cwd=tmp_path).having(fallback_models=(named,))
        async with opened(options) as (_, agent, _facts):
            await ask(agent)
            cost = agent.spending().session
        assert (asked(home), asked(work)) == ([HOME], [WORK])
        assert all("x-of-home" not in one.headers for one in work.requests)
        assert [one.body["model"] for one in work.posts] == [named.partition("/")[2] or OPUS]
        if not named.endswith("other"):
            assert cost.usd == pytest.approx(cost.usage.input_tokens * 100 / 1e6)  # pyright: ignore[reportUnknownMemberType]


async def test_a_profile_without_a_key_is_named_at_once_and_never_asked(tmp_path: Path) -> None:
    async with LoopbackServer({"turns": [BUSY], "keys": [HOME]}) as home:
        write(
            f"""
            base_url = "{home.url}"
            fallback_models = ["@empty"]
            [retry]
            max_attempts = 0
            [profile.empty]
            base_url = "https://empty.example"
            """
        )
        credentials.store_key(HOME, home.url, env=os.environ, folders=folders())
        async with opened(Options(cwd=tmp_path)) as (_, agent, started):
            notice = next(one for one in started if isinstance(one, Notice))
            facts = await ask(agent)
    assert "Skipping the fallback @empty. Profile empty has no key for" in notice.text
    error = next(one for one in facts if isinstance(one, ErrorRaised))
    assert "Tried too" not in error.hint


def test_a_profile_that_is_not_there_is_a_mistake_in_the_settings(tmp_path: Path) -> None:
    write('fallback_models = ["@wrok"]\n[profile.work]\n')
    with pytest.raises(ConfigError, match="there is no profile wrok") as caught:
        launch_config.prepare(Options(cwd=tmp_path))
    assert "fallback_models" in str(caught.value)
    assert caught.value.hint == "Did you mean work?"
    bare = launch_config.prepare(Options(cwd=tmp_path).having(bare=True))
    assert bare.config.fallback_models == ()


@pytest.mark.parametrize("key", ["model", "small_model"])
def test_a_model_is_not_chosen_by_a_profile(tmp_path: Path, key: str) -> None:
    write(f'{key} = "@work/{OPUS}"\n[profile.work]\n')
    with pytest.raises(ConfigError, match=f"{key}: can't name a profile"):
        launch_config.prepare(Options(cwd=tmp_path))


def test_a_folder_names_no_account(tmp_path: Path) -> None:
    write("[profile.work]\n")
    file = project_file(tmp_path)
    file.parent.mkdir()
    file.write_text(f'model = "@work/{OPUS}"\nfallback_models = ["@work"]\n')
    launch = launch_config.prepare(Options(cwd=tmp_path).having(trust=True))
    assert launch.config.fallback_models == ()
    assert launch.config.model == Config().model
    assert launch.others == {}
    assert any("model, fallback_models" in one for one in launch.notices)


def test_the_profile_in_use_is_no_other_one(tmp_path: Path) -> None:
    write(
        f"""
        fallback_models = ["@work", "@default", "@work/{OPUS}"]
        [profile.work]
        model = "claude-haiku-5-5"
        """
    )
    usual = launch_config.prepare(Options(cwd=tmp_path))
    assert usual.config.fallback_models == ("@work/claude-haiku-5-5", f"@work/{OPUS}")
    work = launch_config.prepare(Options(cwd=tmp_path).having(profile="work"))
    assert work.config.fallback_models == ("@default", OPUS)
    assert [*work.others] == ["default"]
    assert work.others["default"].access.profile.name == ""


async def test_what_the_other_server_refuses_is_left_out_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with api_and_bedrock(monkeypatch, [BUSY, BUSY], [THINKS]) as (_, cloud):
        cloud.script.lacks = ["output_config"]
        async with opened(Options(cwd=tmp_path).having(effort="low")) as (_, agent, _facts):
            facts = await ask(agent)
            off = [one.data for one in agent.session.records if one.type == "feature"]
        assert not [one for one in facts if isinstance(one, ErrorRaised)]
        assert [one["model"] for one in off] == [f"@aws/{OPUS}"]
        assert "output_config" in cloud.entered[0]
        assert "output_config" not in cloud.entered[1]


async def test_a_summary_is_made_through_the_other_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [THINKS, BUSY, BUSY], [THINKS, THINKS, {"text": "A summary of it all."}, THINKS]
    async with api_and_bedrock(monkeypatch, *turns) as (first, cloud):
        first.script.compactions = [{"status": 529, "type": "overloaded_error"}]
        async with opened(Options(cwd=tmp_path)) as (_, agent, _facts):
            for text in ("hello", "and now?", "more"):
                await ask(agent, text * 300)
            facts = [one async for one in agent.context.compact()]
            await ask(agent, "and then?")
        assert cloud.refused == []
    done = next(one for one in facts if isinstance(one, CompactionFinished))
    assert (done.problem, done.model) == ("", f"@aws/{OPUS}")


async def test_a_summary_of_several_answers_is_paid_where_each_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [THINKS, THINKS], [{"text": "A summary of it all."}] * 2
    more = "[compaction]\nmemory_flush = false"
    async with api_and_bedrock(monkeypatch, *turns, more) as (first, cloud):
        # one answer without a summary, then it is overloaded
        busy = {"status": 529, "type": "overloaded_error"}
        first.script.compactions = [{"stop_reason": "end_turn"}, busy]
        async with opened(Options(cwd=tmp_path)) as (_, agent, _facts):
            for text in ("hello", "and now?"):
                await ask(agent, text * 300)
            facts = [one async for one in agent.context.compact()]
            recorded = agent.spending().session.usd
            paid = [
                (one.type, one.data["model"])
                for one in agent.session.records
                if one.type in {"unused", "compaction"}
            ]
        billed = first.cache.dollars + 1.1 * cloud.cache.dollars
    done = next(one for one in facts if isinstance(one, CompactionFinished))
    assert not done.problem
    assert paid == [("unused", OPUS), ("compaction", f"@aws/{OPUS}")]
    assert recorded == pytest.approx(billed)  # pyright: ignore[reportUnknownMemberType]


async def test_the_price_of_going_on_elsewhere_knows_what_that_account_has_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [THINKS, BUSY, THINKS], [THINKS, THINKS, BUSY]
    async with api_and_bedrock(monkeypatch, *turns) as (first, cloud):
        file = folders().config_file
        file.write_text(file.read_text().replace("[profile.aws]", _FALLS_BACK))
        async with opened(Options(cwd=tmp_path)) as (_, agent, _facts):
            for text in ("word " * 4000, "and now?"):
                await ask(agent, text)  # the second is answered by the cloud
            path = agent.session.path
        options = Options(cwd=tmp_path).having(resume=str(path), profile="aws")
        async with opened(options, Program(options, None).choice()) as (program, agent, _facts):
            info = await program.model_info(agent.models.current)
            before = agent.models.next_prompt(info)
            await ask(agent, "more")
            there = agent.spending().last
            billed = first.cache.dollars
            facts = await ask(agent, "and more")
            back = agent.spending().last
            price = price_of(OPUS, {})
            assert price is not None
            billed = first.cache.dollars - billed - price.forecast(output=back.output_tokens)
        assert cloud.refused == []
    # the cloud has what it got as the fallback
    assert before.cached == pytest.approx(there.cache_read_input_tokens, rel=0.02)  # pyright: ignore[reportUnknownMemberType]
    assert before.tokens == pytest.approx(there.prompt_tokens, rel=0.02)  # pyright: ignore[reportUnknownMemberType]
    # and the API what it got before
    switched = next(one for one in facts if isinstance(one, ModelSwitched))
    assert switched.new == f"@default/{OPUS}"
    new = back.prompt_tokens - back.cache_read_input_tokens
    assert back.cache_read_input_tokens > 10 * new
    assert switched.again == pytest.approx(new, abs=60)  # pyright: ignore[reportUnknownMemberType]
    assert switched.usd == pytest.approx(billed, rel=0.02)  # pyright: ignore[reportUnknownMemberType]


_FALLS_BACK = "[profile.aws]\nfallback_models = ['@default']"


async def test_a_key_that_is_refused_offers_the_other_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = {**THINKS, "faults": [{"status": 401, "type": "authentication_error"}]}
    async with api_and_bedrock(monkeypatch, [refused], [THINKS]) as (_, cloud):
        program, frontend = Program(Options(cwd=tmp_path), None), Chooser("elsewhere")
        conversation = Conversation(program, frontend)
        await open_first(conversation, SessionChoice())
        agent = conversation.agent
        assert agent is not None
        assert conversation.submit("hello") == "sent"
        await until(lambda: frontend.results)
        await offer_recovery(conversation, ErrorRaised("auth", "No such key.", True, ""))
        await until(lambda: len(frontend.results) == 2)
        await conversation.close()
        (card,) = frontend.asked
        assert card.ways[0].label == "Through aws"
    assert agent.models.current == f"@aws/{OPUS}"
    assert not agent.models.takes_key
    assert len(cloud.entered) == 1
