"""Write a tool once. Call it from any model, serve it anywhere, run it safely."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from toolcrib.dispatch import acall_tools, call_tools
from toolcrib.errors import (
    AuthorizationNeededError,
    EngineError,
    ExternalToolError,
    MCPConnectionError,
    MissingExtraError,
    NotSerializableError,
    OpenAPIError,
    TargetError,
    ToolArgumentError,
    ToolcribError,
    ToolcribWarning,
    ToolDeniedError,
    ToolExecutionError,
    ToolNameError,
    ToolNotFoundError,
    ToolSignatureError,
    ToolTimeoutError,
    WallError,
    WeightsError,
)
from toolcrib.events import (
    Event,
    ModelReplied,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from toolcrib.executors.inline import InlineExecutor
from toolcrib.limits import Limits, ScriptLimits, WallLimits
from toolcrib.protocols import (
    ArtifactStore,
    Engine,
    Executor,
    ExternalToolClient,
    Format,
    StreamingEngine,
    ToolProvider,
)
from toolcrib.schema.inferred import SchemaPart
from toolcrib.sources.skill import BaseSkill
from toolcrib.stores.memory import InMemoryArtifactStore
from toolcrib.tools import Tool, tool, tool_from_function
from toolcrib.toolset import Toolset, ToolsetChanges
from toolcrib.types import (
    Effect,
    Envelope,
    Kind,
    Message,
    NativeTool,
    Reply,
    Role,
    RunError,
    RunMetadata,
    Secret,
    ToolCall,
    ToolContext,
    ToolParameter,
    ToolResponse,
    ToolResult,
    Usage,
)

if TYPE_CHECKING:
    from toolcrib import builtin, formats
    from toolcrib.agent import Agent
    from toolcrib.builtin.databases import sql_tools
    from toolcrib.builtin.documents import read_docs_tools
    from toolcrib.builtin.folders import file_tools
    from toolcrib.builtin.pages import web_tools
    from toolcrib.engines.llm import LLMEngine
    from toolcrib.engines.local import LocalEngine
    from toolcrib.engines.scripted import ScriptedEngine
    from toolcrib.executors.approval import ApprovalExecutor
    from toolcrib.executors.bubblewrap import BubblewrapExecutor
    from toolcrib.executors.process import ProcessExecutor
    from toolcrib.executors.retry import RetryExecutor
    from toolcrib.executors.trace import TraceExecutor
    from toolcrib.serve.gateway import gateway_app, serve_gateway
    from toolcrib.serve.mcp import mcp_app, mcp_server, serve_mcp
    from toolcrib.sources.arcade import ArcadeClient
    from toolcrib.sources.composio import ComposioClient
    from toolcrib.sources.gateway import ExternalToolProvider, ExternalToolSpec, JsonHttpExternalToolClient
    from toolcrib.sources.mcp import MCP, MCPClient, MCPElicitation, MCPSampling
    from toolcrib.sources.openapi import OpenAPI, OpenAPILine, OpenAPIReport
    from toolcrib.sources.pipedream import PipedreamClient
    from toolcrib.sources.script import ScriptOutcome, ScriptTool
    from toolcrib.sources.skill_folder import SkillFolder
    from toolcrib.stores.redis import RedisArtifactStore
    from toolcrib.stores.sqlite import SQLiteArtifactStore

    __version__: str

__all__ = [
    "MCP",
    "Agent",
    "ApprovalExecutor",
    "ArcadeClient",
    "ArtifactStore",
    "AuthorizationNeededError",
    "BaseSkill",
    "BubblewrapExecutor",
    "ComposioClient",
    "Effect",
    "Engine",
    "EngineError",
    "Envelope",
    "Event",
    "Executor",
    "ExternalToolClient",
    "ExternalToolError",
    "ExternalToolProvider",
    "ExternalToolSpec",
    "Format",
    "InMemoryArtifactStore",
    "InlineExecutor",
    "JsonHttpExternalToolClient",
    "Kind",
    "LLMEngine",
    "Limits",
    "LocalEngine",
    "MCPClient",
    "MCPConnectionError",
    "MCPElicitation",
    "MCPSampling",
    "Message",
    "MissingExtraError",
    "ModelReplied",
    "NativeTool",
    "NotSerializableError",
    "OpenAPI",
    "OpenAPIError",
    "OpenAPILine",
    "OpenAPIReport",
    "PipedreamClient",
    "ProcessExecutor",
    "RedisArtifactStore",
    "Reply",
    "RetryExecutor",
    "Role",
    "RunError",
    "RunFinished",
    "RunMetadata",
    "RunStarted",
    "SQLiteArtifactStore",
    "SchemaPart",
    "ScriptLimits",
    "ScriptOutcome",
    "ScriptTool",
    "ScriptedEngine",
    "Secret",
    "SkillFolder",
    "StreamingEngine",
    "TargetError",
    "TextDelta",
    "Tool",
    "ToolArgumentError",
    "ToolCall",
    "ToolContext",
    "ToolDeniedError",
    "ToolExecutionError",
    "ToolFinished",
    "ToolNameError",
    "ToolNotFoundError",
    "ToolParameter",
    "ToolProgress",
    "ToolProvider",
    "ToolResponse",
    "ToolResult",
    "ToolSignatureError",
    "ToolStarted",
    "ToolTimeoutError",
    "ToolcribError",
    "ToolcribWarning",
    "Toolset",
    "ToolsetChanges",
    "TraceExecutor",
    "Usage",
    "WallError",
    "WallLimits",
    "WeightsError",
    "__version__",
    "acall_tools",
    "builtin",
    "call_tools",
    "file_tools",
    "formats",
    "gateway_app",
    "mcp_app",
    "mcp_server",
    "read_docs_tools",
    "serve_gateway",
    "serve_mcp",
    "sql_tools",
    "tool",
    "tool_from_function",
    "web_tools",
]

# Names whose room is costly to import and not needed by every program: imported when first asked for.
_LAZY = {
    "Agent": "toolcrib.agent",
    "ApprovalExecutor": "toolcrib.executors.approval",
    "ArcadeClient": "toolcrib.sources.arcade",
    "BubblewrapExecutor": "toolcrib.executors.bubblewrap",
    "ComposioClient": "toolcrib.sources.composio",
    "ExternalToolProvider": "toolcrib.sources.gateway",
    "ExternalToolSpec": "toolcrib.sources.gateway",
    "JsonHttpExternalToolClient": "toolcrib.sources.gateway",
    "LLMEngine": "toolcrib.engines.llm",
    "LocalEngine": "toolcrib.engines.local",
    "MCP": "toolcrib.sources.mcp",
    "MCPClient": "toolcrib.sources.mcp",
    "MCPElicitation": "toolcrib.sources.mcp",
    "MCPSampling": "toolcrib.sources.mcp",
    "OpenAPI": "toolcrib.sources.openapi",
    "OpenAPILine": "toolcrib.sources.openapi",
    "OpenAPIReport": "toolcrib.sources.openapi",
    "PipedreamClient": "toolcrib.sources.pipedream",
    "ProcessExecutor": "toolcrib.executors.process",
    "RedisArtifactStore": "toolcrib.stores.redis",
    "RetryExecutor": "toolcrib.executors.retry",
    "SQLiteArtifactStore": "toolcrib.stores.sqlite",
    "ScriptOutcome": "toolcrib.sources.script",
    "ScriptTool": "toolcrib.sources.script",
    "ScriptedEngine": "toolcrib.engines.scripted",
    "SkillFolder": "toolcrib.sources.skill_folder",
    "TraceExecutor": "toolcrib.executors.trace",
    "file_tools": "toolcrib.builtin.folders",
    "gateway_app": "toolcrib.serve.gateway",
    "mcp_app": "toolcrib.serve.mcp",
    "mcp_server": "toolcrib.serve.mcp",
    "read_docs_tools": "toolcrib.builtin.documents",
    "serve_gateway": "toolcrib.serve.gateway",
    "serve_mcp": "toolcrib.serve.mcp",
    "sql_tools": "toolcrib.builtin.databases",
    "web_tools": "toolcrib.builtin.pages",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value = importlib.import_module("importlib.metadata").version("toolcrib")
    elif name in {"builtin", "formats"}:
        value = importlib.import_module(f"toolcrib.{name}")
    elif name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
    else:
        raise AttributeError(f"module 'toolcrib' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
