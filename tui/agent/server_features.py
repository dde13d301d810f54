"""Features that a server turned out to lack: switched off once per server and model, by record.

A `feature` record stands for each. It names what is left out of the requests from then on, by the
names of `tui.provider.anthropic.convert`; "max_output" says how long an answer they ask for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tui.agent.agent_context import AgentContext
from tui.context.record_index import RecordIndex
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import ProviderError
from tui.core.fact_words import without_feature
from tui.core.facts import FeatureMissing, Notice
from tui.provider.base import ModelInfo, Request

FEATURE: Final = "feature"
"""The type of the record."""

MAX_OUTPUT: Final = "max_output"
"""The feature whose record says how long a server's answers may be."""
_HALVINGS: Final = 3
_LEAST_HALF: Final = 4096
"""Tokens: where a server names no number, shorter answers are not tried."""


@dataclass(frozen=True, slots=True)
class ServerFeatures:
    """The features that the server of one agent does not know, by its models."""

    ctx: AgentContext
    _index: RecordIndex = field(default_factory=lambda: RecordIndex({FEATURE}))
    _unrecorded: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def off(self, model: str) -> frozenset[str]:
        """Return the features that are not used with a model."""
        recorded = frozenset(known.feature for known in self._of(model))
        return (
            self.ctx.link.at(model).lacks
            | recorded
            | {feature for feature, of in self._unrecorded if of == model}
        )

    def _of(self, model: str) -> Iterator[FeatureMissing]:
        server = self.ctx.link.at(model).host
        for record in self._index.of(self.ctx.records):
            known = FeatureMissing.of_record(record.data)
            if known.model == model and known.server == server:
                yield known

    def limited(self, model: ModelInfo) -> ModelInfo:
        """Return a model with the length of its answers as the person set it, and no longer than
        its server allowed. A setting beyond what is known counts where that is an assumption."""
        wanted, most = self.ctx.longest_answer(model.id), model.max_output
        if wanted:
            guessed = model.source in {"assumed", "config"}
            most = wanted if guessed else min(wanted, most)
        learnt = [known.tokens for known in self._of(model.id) if known.tokens]
        parent = self.ctx.parent.link.model if self.ctx.parent is not None else None
        if parent is not None and parent.id == model.id:  # it asks the same server
            learnt.append(parent.max_output)
        most = min([most, *learnt])
        return model if most == model.max_output else replace(model, max_output=most)

    def shorten(self, error: ProviderError, sent: Request) -> bool:
        """Ask for shorter answers from now on, where the server refused the length of this one.

        It is as short as the server says; where it names no number that can be read, half as long,
        at most three times. False where nothing shorter is left to ask for.
        """
        if error.answer is None:
            return False
        tries = sum(known.feature == MAX_OUTPUT for known in self._of(sent.model))
        named, most = error.answer.tokens, sent.max_tokens
        if tries > _HALVINGS:
            return False
        if named is not None and named <= most:
            fewer = min(named, most - 1)  # "lower than 8192" may be meant to the letter
        elif tries < _HALVINGS and most > _LEAST_HALF:
            fewer = max(_LEAST_HALF, most // 2)
        else:
            return False
        server, id_ = self.ctx.link.at(sent.model).host, error.request_id
        self.ctx.record(FeatureMissing(MAX_OUTPUT, server, sent.model, error.message, id_, fewer))
        self.ctx.publish(Notice(without_feature(MAX_OUTPUT, fewer)))
        return True

    def switch_off(self, error: ProviderError, model: str) -> bool:
        """Leave out of the next request what the server refused in this one, if it named that.

        False where nothing is left to leave out: the same request is never sent again.
        """
        if not error.feature or error.feature in self.off(model):
            return False
        self.note(error.feature, model, error.message, error.request_id)
        self.ctx.publish(Notice(without_feature(error.feature)))
        return True

    def note(self, feature: str, model: str, message: str, request_id: str | None = None) -> None:
        """Record that the server refused something of a model, in these words."""
        server = self.ctx.link.at(model).host
        self.ctx.record(FeatureMissing(feature, server, model, message, request_id))

    def note_with_prompt(self, feature: str, model: str, error: ProviderError) -> None:
        """As `note`, at once in force, but recorded only with the next prompt, if there is one."""
        self._unrecorded.add((feature, model))
        server = self.ctx.link.at(model).host
        self.ctx.session.with_next_prompt(
            FeatureMissing(feature, server, model, error.message, error.request_id)
        )
