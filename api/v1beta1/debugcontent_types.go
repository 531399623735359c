// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// DebugRequest is what a model was asked, in no provider's words.
type DebugRequest struct {
	// messages of the prompt, oldest first: the system prompt, and the newest for which there is room, at most 512.
	// +kubebuilder:validation:MaxItems=512
	// +listType=atomic
	// +optional
	Messages []DebugMessage `json:"messages,omitempty"`

	// omittedMessages is how many messages are left out, those after the system prompt.
	// +kubebuilder:validation:Minimum=0
	// +optional
	OmittedMessages int32 `json:"omittedMessages,omitempty"`

	// tools that were offered; of more than 128, the first.
	// +kubebuilder:validation:MaxItems=128
	// +listType=atomic
	// +optional
	Tools []DebugTool `json:"tools,omitempty"`

	// toolChoice is what the model had to do about tools, if it was told.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	ToolChoice string `json:"toolChoice,omitempty"`

	// options of the call as one JSON object: maxOutputTokens, temperature and the like, and those for the provider.
	// +kubebuilder:validation:MaxLength=10100
	// +optional
	Options string `json:"options,omitempty"`
}

// DebugMessage is a message of a recorded prompt.
type DebugMessage struct {
	// role of the message: system, user, assistant or tool.
	// +kubebuilder:validation:MaxLength=32
	// +required
	Role string `json:"role"`

	// parts of the message; of more than 64, the first.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Parts []DebugPart `json:"parts,omitempty"`

	// omittedParts is how many parts at the end are left out.
	// +kubebuilder:validation:Minimum=0
	// +optional
	OmittedParts int32 `json:"omittedParts,omitempty"`
}

// DebugPart is a part of a recorded message or reply.
type DebugPart struct {
	// type of the part.
	// +required
	Type DebugPartType `json:"type"`

	// text of a Text or Reasoning, arguments of a ToolCall, output of a ToolResult, URL of a Source, or of a File
	// that the provider was handed by its URL; cut at 10000 characters in a request. Other Files have none.
	// +kubebuilder:validation:MaxLength=50100
	// +optional
	Text string `json:"text,omitempty"`

	// id of the tool call.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	ID string `json:"id,omitempty"`

	// name of the tool or the file, title of the source.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Name string `json:"name,omitempty"`

	// mediaType of a file.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	MediaType string `json:"mediaType,omitempty"`

	// bytes is the size of a file.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Bytes int64 `json:"bytes,omitempty"`

	// isError is true for the result of a tool that failed.
	// +optional
	IsError bool `json:"isError,omitempty"`
}

// DebugTool is a tool that was offered to the model.
type DebugTool struct {
	// name of the tool.
	// +kubebuilder:validation:MaxLength=256
	// +required
	Name string `json:"name"`

	// description of the tool, cut at 1000 characters.
	// +kubebuilder:validation:MaxLength=1100
	// +optional
	Description string `json:"description,omitempty"`

	// inputSchema is the JSON schema of the arguments, cut at 10000 characters; of a tool that the provider runs, its
	// arguments.
	// +kubebuilder:validation:MaxLength=10100
	// +optional
	InputSchema string `json:"inputSchema,omitempty"`
}

// DebugResponse is what a model answered, in no provider's words.
type DebugResponse struct {
	// parts of the reply, together cut at 50000 bytes of text; of more than 256, the first.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Parts []DebugPart `json:"parts,omitempty"`

	// partCounts are how many parts of each type came, those of the stream one by one.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	// +optional
	PartCounts []DebugPartCount `json:"partCounts,omitempty"`

	// finishReason is why the model stopped.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	FinishReason string `json:"finishReason,omitempty"`

	// usage as the provider counts it.
	// +optional
	Usage TokenUsage `json:"usage,omitempty,omitzero"`

	// warnings, such as of settings that the provider does not take.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=1100
	// +listType=atomic
	// +optional
	Warnings []string `json:"warnings,omitempty"`
}

// DebugPartCount counts the parts of one type.
type DebugPartCount struct {
	// type of the parts, as they are named in the stream: text_delta and the like.
	// +kubebuilder:validation:MaxLength=64
	// +required
	Type string `json:"type"`

	// count of them.
	// +kubebuilder:validation:Minimum=0
	// +required
	Count int32 `json:"count"`
}
