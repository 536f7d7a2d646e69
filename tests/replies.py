"""Replies as each provider builds them from the definitions that it was shown: its names and property keys."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

from toolcrib.formats import FORMATS

__all__ = ["as_shown", "read_back"]


def as_shown(value, canonical, shown):
    """Return arguments under the keys of the definition, and under a strict one null for what is left out."""
    canonical, shown = solid(canonical), solid(shown)
    if isinstance(value, list):
        return [as_shown(item, canonical.get("items", {}), shown.get("items", {})) for item in value]
    if not isinstance(value, dict) or "properties" not in shown:
        return value
    keys = dict(zip(canonical["properties"], shown["properties"], strict=True))
    found = {
        keys[key]: as_shown(item, canonical["properties"][key], shown["properties"][keys[key]])
        for key, item in value.items()
    }
    return {**dict.fromkeys(shown.get("required", ())), **found}


def solid(schema):
    return next((choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}), schema)


def openai_chat_reply(tool, definitions, calls):
    (function,) = (definition["function"] for definition in definitions)
    asked = [
        {
            "id": call.id,
            "type": "function",
            "function": {
                "name": function["name"],
                "arguments": json.dumps(as_shown(call.arguments, tool.input_schema, function["parameters"])),
            },
        }
        for call in calls
    ]
    return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": asked}}]}


def openai_responses_reply(tool, definitions, calls):
    (function,) = definitions
    output = [
        {
            "type": "function_call",
            "id": f"fc_{call.id}",
            "call_id": call.id,
            "name": function["name"],
            "arguments": json.dumps(as_shown(call.arguments, tool.input_schema, function["parameters"])),
            "status": "completed",
        }
        for call in calls
    ]
    return {"output": [{"type": "reasoning", "id": "rs_1", "summary": []}, *output]}


def anthropic_reply(tool, definitions, calls):
    (function,) = definitions
    blocks = [
        {
            "type": "tool_use",
            "id": call.id,
            "name": function["name"],
            "input": as_shown(call.arguments, tool.input_schema, function["input_schema"]),
        }
        for call in calls
    ]
    return {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, *blocks]}


def gemini_reply(tool, definitions, calls):
    ((function,),) = (group["function_declarations"] for group in definitions)
    parts = [
        {
            "functionCall": {
                "id": call.id,
                "name": function["name"],
                "args": as_shown(call.arguments, tool.input_schema, function.get("parameters", {})),
            }
        }
        for call in calls
    ]
    return {"candidates": [{"content": {"role": "model", "parts": parts}}]}


def xml_reply(tool, definitions, calls):
    (shown,) = ET.fromstring(definitions[definitions.index("<tools>") : definitions.rindex("</tools>") + 8])  # noqa: S314  # our own text
    keys = [parameter.get("name") for parameter in shown.iter("parameter")]
    assert keys == list(tool.input_schema["properties"])
    asked = [{"name": shown.get("name"), "arguments": call.arguments} for call in calls]
    return "I will.\n" + "\n".join(f"<tool_call>\n{json.dumps(one)}\n</tool_call>" for one in asked)


REPLIES = {
    "anthropic": anthropic_reply,
    "gemini": gemini_reply,
    "openai_chat": openai_chat_reply,
    "openai_responses": openai_responses_reply,
    "xml": xml_reply,
}


def read_back(format_name, toolset, calls):
    """Return the calls of one reply; in the one protocol with a request for each call, of as many requests."""
    (tool,) = toolset
    form = FORMATS[format_name]
    if format_name == "mcp":
        (shown,) = form.tools(toolset)
        params = [(call.id, {"name": shown["name"], "arguments": call.arguments}) for call in calls]
        requests = [{"id": number, "method": "tools/call", "params": given} for number, given in params]
        return [call for request in requests for call in form.calls(request, toolset)]
    return form.calls(REPLIES[format_name](tool, form.tools(toolset), calls), toolset)
