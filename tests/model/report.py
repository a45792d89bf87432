"""Traces and results as text."""

from __future__ import annotations

from tests.model.checker import Result
from tests.model.store import Frozen


def describe(doc) -> str:
    if not isinstance(doc, Frozen):
        return str(doc)
    if doc.get("kind") == "value":
        return f"value {doc.text} ({doc.generation}/{doc.name})"
    if "keys" in doc and "status" not in doc:
        keys = (f"{k}={e.text}@{e.stamp}/{e.ref[1]}" for k, e in sorted(doc["keys"].items()))
        return "{" + ", ".join(keys) + "} erased@" + str(doc.erased)
    if "keys" in doc:
        shown = "".join(f" {e.text}/{e.ref[1]}" for e in doc["keys"].values())
        before = f" after {', '.join(doc.before)}" if doc.before else ""
        return f"{{{doc.incarnation} {doc.status} rev={doc.revision}{shown}{before}}}"
    if doc.get("kind") == "text":
        return doc.text
    if "kind" in doc and doc.kind != "body":
        text = doc.event_id if doc.kind == "event" else doc.kind.upper()
        deltas = [f" {scope}{dict(doc[scope])}" for scope in ("user", "app") if doc.get(scope)]
        return text + "".join(deltas)
    if doc.get("kind") == "body":
        return "body of " + doc.event_id
    if "stamps" in doc:
        keys = (f"{k}={v}@{doc.stamps[k][0]}" for k, v in sorted(doc.state.items()))
        erased = f" erased@{doc.erased}" if "erased" in doc else ""
        return "{" + ", ".join(keys) + "}" + erased
    if doc.get("status") == "probe":
        return "{a write that cannot succeed}"
    initial = " +initial state" if "initial" in doc else ""
    log = f" first={doc.first_seq} rev={doc.revision}" if "first_seq" in doc else ""
    return f"{{{doc.incarnation} {doc.get('status', 'stored')}{log}{initial}}}"


def describe_step(step: tuple) -> str:
    name, op, reply = step
    if op[0] == "crash":
        return f"{name}: ** crash **"
    if op[0] == "now":
        return f"{name}: clock -> {reply}"
    if op[0] == "local":
        return f"{name}: {op[1]}"
    if op[0] == "wait":
        return f"{name}: {op[1]} units of time pass"
    if op[0] == "list":
        found = zip(op[1], reply[1], strict=True)
        shown = "; ".join(f"{p}: {', '.join(map(describe, docs))}" for p, docs in found)
        return f"{name}: list -> {shown}"
    text = f"{name}: {op[0]} {op[1]}"
    if op[0] not in ("query", "scan") and op[1].startswith("log"):
        text += "#{}/{}".format(*op[2])
    if op[1] == "kept" and op[0] not in ("query", "scan"):
        text += "#" + "/".join(map(str, op[2]))
    if op[0] in ("create", "replace"):
        text += " := " + describe(op[3])
    if isinstance(reply, str):
        return f"{text} -> {reply}"
    if op[0] in ("query", "scan"):
        docs = [d if op[0] == "query" else d[1] for d in reply[1]]
        ids = (f"{d.seq}/{d.incarnation}:" if "seq" in d else "" for d in docs)
        found = ", ".join(each + describe(d) for each, d in zip(ids, docs, strict=True))
        return f"{text} -> [{found}]"
    if op[0] == "read" and reply[0] == "ok":
        return f"{text} -> {describe(reply[2])}"
    return f"{text} -> {reply[0]}"


def describe_result(title: str, result: Result, traces: bool) -> str:
    lines = [
        f"{title}: {result.states} states, {result.endings} endings, {result.seconds:.1f} s CPU"
        + (" (not all states visited)" if result.truncated else "")
    ]
    for name, (text, trace) in result.violations.items():
        lines.append(f"    {name}: {text} ({len(trace)} steps)")
        if traces:
            lines += ["        " + describe_step(step) for step in trace]
    return "\n".join(lines)
