// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// ChatTools says which tools the model may call.
// +kubebuilder:validation:XValidation:rule="!has(self.allow) || self.allow.all(p, p.endsWith('*') || p.contains('__') || (has(self.client) && self.client.exists(c, c.name == p)) || p in ['current_time', 'ask_user_question', 'propose_plan', 'spawn_agent', 'message_agent', 'interrupt_agent', 'list_agents', 'list_subagent_models', 'wait_agent', 'advisor', 'web_search', 'code_execution', 'execute', 'process_output', 'process_list', 'process_signal', 'read_file', 'write_file', 'edit_files', 'search_files', 'attach_file', 'start_workspace', 'stop_workspace', 'list_templates', 'read_template', 'create_workspace', 'read_skill', 'read_skill_file', 'k8s_get', 'k8s_list', 'k8s_describe', 'k8s_logs', 'k8s_events', 'k8s_apply', 'k8s_delete'])",message="allow has a name that no tool has: docs/reference/tools.md lists Parley's own, those of an MCP server are server__tool, and one that another object brings needs a * at its end"
// +kubebuilder:validation:XValidation:rule="!has(self.client) || !has(self.approval) || !self.client.exists(c, c.name in self.approval)",message="a client decides itself about the calls of its tools: leave them out of approval"
// +kubebuilder:validation:XValidation:rule="!has(self.provider) || !has(self.client) || self.client.all(c, !(c.name == 'web_search' && 'WebSearch' in self.provider) && !(c.name == 'code_execution' && 'CodeExecution' in self.provider))",message="web_search and code_execution are the names of the provider's own tools: choose another one for the client's"
type ChatTools struct {
	ToolPolicy `json:",inline"`

	// client lists tools that a client of the chat runs, not Parley: a call of one waits in status.requiresAction until a
	// ChatMessage with role Tool brings its result.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Client []ClientTool `json:"client,omitempty"`

	// provider lists tools that the provider of the model runs itself, within its reply. A provider that has no such tool
	// is asked without it, and the condition ProviderToolsUnavailable says so. Their calls wait for no one, so that those
	// are not switched on that approval names; stopAfter does not see them. In the policy WebSearch is web_search, and
	// CodeExecution is code_execution. Default: none.
	// +kubebuilder:validation:MaxItems=8
	// +listType=set
	// +optional
	Provider []ProviderTool `json:"provider,omitempty"`

	// webSearch bounds the searches of WebSearch. Default: the provider's settings.
	// +optional
	WebSearch *WebSearchSettings `json:"webSearch,omitempty"`

	// stopAfter names the tools after whose success the turn ends without the model being called again, built-in ones and
	// a client's alike. All calls of the reply are answered first. A result that is an error does not end the turn. The
	// list counts as it is when the result is made. Default: none.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +listType=set
	// +optional
	StopAfter []string `json:"stopAfter,omitempty"`
}

// ToolPolicy says which tools may be called, and which calls a person has to approve. It is the same for tools of
// Parley, of MCP servers, of clients and of providers. A tool is offered to the model if it is of use to the chat,
// allow matches its name, and deny does not.
type ToolPolicy struct {
	// allow matches the tools that may be called. Default: all.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	Allow []ToolPattern `json:"allow,omitempty"`

	// deny matches the tools that may not be called, whatever allow says; "*" is all of them. Default: none.
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	Deny []ToolPattern `json:"deny,omitempty"`

	// approval matches the tools whose calls wait in status.requiresAction until a ToolApproval approves or denies them. A
	// client decides itself about the calls of its tools. Default: none.
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	Approval []ToolPattern `json:"approval,omitempty"`
}

// ToolPattern is the name of a tool, or how names begin, with a "*" behind it: github__* are the tools of the MCP
// server github, * is every tool.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]*[*]?$')",message="tools are named by letters, digits, _ and -, with at most one * at the end, such as read_file, github__* or *"
type ToolPattern string

// StoppedBy is the tool of the first of the results that ends the turn: one that is named in stopAfter and did not
// fail. It is empty if none does.
func (t *ChatTools) StoppedBy(results []ToolResult) string {
	for i := range results {
		if t != nil && !results[i].IsError && slices.Contains(t.StopAfter, results[i].Name) {
			return results[i].Name
		}
	}
	return ""
}

// MaxToolDescription is the maximum length of ClientTool.description, in characters. Coding agents describe a shell in
// more than 10,000.
const MaxToolDescription = 16384

// ClientTool is a tool that a client of the chat runs.
type ClientTool struct {
	// name that the model calls.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="the name of a tool has letters, digits, _ and - only, such as open_ticket"
	// +kubebuilder:validation:XValidation:rule="!(self in ['current_time', 'ask_user_question', 'propose_plan', 'spawn_agent', 'message_agent', 'interrupt_agent', 'list_agents', 'list_subagent_models', 'wait_agent', 'advisor', 'execute', 'process_output', 'process_list', 'process_signal', 'read_file', 'write_file', 'edit_files', 'search_files', 'attach_file', 'start_workspace', 'stop_workspace', 'list_templates', 'read_template', 'create_workspace', 'read_skill', 'read_skill_file', 'k8s_get', 'k8s_list', 'k8s_describe', 'k8s_logs', 'k8s_events', 'k8s_apply', 'k8s_delete'])",message="this is the name of a built-in tool: choose another one"
	// +required
	Name string `json:"name"`

	// description tells the model what the tool does and when to call it.
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	Description string `json:"description,omitempty"`

	// inputSchema is the JSON schema of the arguments, an object. Default: an object without properties.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +optional
	InputSchema *runtime.RawExtension `json:"inputSchema,omitempty"`
}

// BuiltInTool is the name of a tool that Parley brings.
type BuiltInTool string

const (
	// BuiltInCurrentTime tells the model the time of day.
	BuiltInCurrentTime BuiltInTool = "current_time"
	// BuiltInWaitAgent waits for a sub-chat and tells the model what it said last. Unless tools.allow has its name, it is
	// offered only to a chat that has sub-chats.
	BuiltInWaitAgent BuiltInTool = "wait_agent"
)

// Tools with which a model has chats of its own. They are offered to chats that turn subAgents on.
const (
	// BuiltInSpawnAgent starts a sub-chat.
	BuiltInSpawnAgent BuiltInTool = "spawn_agent"
	// BuiltInMessageAgent says something to one.
	BuiltInMessageAgent BuiltInTool = "message_agent"
	// BuiltInInterruptAgent ends the turn of one.
	BuiltInInterruptAgent BuiltInTool = "interrupt_agent"
	// BuiltInListAgents lists them.
	BuiltInListAgents BuiltInTool = "list_agents"
	// BuiltInListSubagentModels lists the ChatModelConfigs that may answer them.
	BuiltInListSubagentModels BuiltInTool = "list_subagent_models"
)

// Tools that work in the workspace of the chat's family. They are offered to chats that have one.
// docs/reference/tools.md has what each does.
const (
	// BuiltInExecute runs a command.
	BuiltInExecute BuiltInTool = "execute"
	// BuiltInProcessOutput waits for a command that was left running, and shows what it has written.
	BuiltInProcessOutput BuiltInTool = "process_output"
	// BuiltInProcessList lists commands.
	BuiltInProcessList BuiltInTool = "process_list"
	// BuiltInProcessSignal ends a command.
	BuiltInProcessSignal BuiltInTool = "process_signal"
	// BuiltInReadFile reads lines of a file.
	BuiltInReadFile BuiltInTool = "read_file"
	// BuiltInWriteFile writes a file.
	BuiltInWriteFile BuiltInTool = "write_file"
	// BuiltInEditFiles replaces texts in files, all or none.
	BuiltInEditFiles BuiltInTool = "edit_files"
	// BuiltInSearchFiles finds files by name and content.
	BuiltInSearchFiles BuiltInTool = "search_files"
	// BuiltInAttachFile brings a file into the conversation.
	BuiltInAttachFile BuiltInTool = "attach_file"
)

// Tools that read skills. They are offered to chats with skillsFrom, and to those that have a workspace.
const (
	// BuiltInReadSkill reads a skill: its instructions, and which files it has.
	BuiltInReadSkill BuiltInTool = "read_skill"
	// BuiltInReadSkillFile reads a file of a skill.
	BuiltInReadSkillFile BuiltInTool = "read_skill_file"
)

// Tools for the workspace itself. They are offered to the chat at the top of a family.
const (
	// BuiltInStartWorkspace starts the workspace, and says where its files are.
	BuiltInStartWorkspace BuiltInTool = "start_workspace"
	// BuiltInStopWorkspace stops it; its storage stays.
	BuiltInStopWorkspace BuiltInTool = "stop_workspace"
	// BuiltInListTemplates lists the templates that a workspace may be made from, if the model is to choose.
	BuiltInListTemplates BuiltInTool = "list_templates"
	// BuiltInReadTemplate shows one of them, with its parameters.
	BuiltInReadTemplate BuiltInTool = "read_template"
	// BuiltInCreateWorkspace chooses one of them.
	BuiltInCreateWorkspace BuiltInTool = "create_workspace"
)
