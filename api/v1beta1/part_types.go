// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PartType discriminates the union MessagePart.
// +kubebuilder:validation:Enum=Text;Reasoning;ToolCall;ToolResult;Source;File
type PartType string

const (
	// PartText is text; its content is in text.
	PartText PartType = "Text"
	// PartReasoning is the model's reasoning, if the provider shows it; its content is in text.
	PartReasoning PartType = "Reasoning"
	// PartToolCall is a call that the model asks for.
	PartToolCall PartType = "ToolCall"
	// PartToolResult is the result of a call.
	PartToolResult PartType = "ToolResult"
	// PartSource is a source that the provider cites.
	PartSource PartType = "Source"
)

const (
	// MaxContentBytes is the most content that one ChatMessage holds: 1 MiB. etcd refuses requests over 1.5 MiB by
	// default, and an object is more than its content.
	MaxContentBytes = 1 << 20
	// MaxParts is the most parts that one ChatMessage holds.
	MaxParts = 512
	// MaxProviderMetadataBytes bounds the opaque metadata of one part.
	MaxProviderMetadataBytes = 256 << 10
)

// MessagePart is one piece of a message: a union, discriminated by type.
// +kubebuilder:validation:XValidation:rule="[self.type].all(t, (t in ['Text', 'Reasoning']) == has(self.text) && (t == 'ToolCall') == has(self.toolCall) && (t == 'ToolResult') == has(self.toolResult) && (t == 'Source') == has(self.source) && (t == 'File') == has(self.file))",messageExpression="(self.type in ['Text', 'Reasoning']) != has(self.text) ? 'text must be set for the types Text and Reasoning, and for no other' : (self.type == 'ToolCall') != has(self.toolCall) ? 'toolCall must be set for the type ToolCall, and for no other' : (self.type == 'ToolResult') != has(self.toolResult) ? 'toolResult must be set for the type ToolResult, and for no other' : (self.type == 'Source') != has(self.source) ? 'source must be set for the type Source, and for no other' : 'file must be set for the type File, and for no other'"
type MessagePart struct {
	// type says which of the other fields is set.
	// +required
	Type PartType `json:"type"`

	// text of a Text or Reasoning part.
	// +kubebuilder:validation:MaxLength=1048576
	// +optional
	Text *string `json:"text,omitempty"`

	// title of a Reasoning part, if the model gave it one: what it wrote in bold on the first line.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Title string `json:"title,omitempty"`

	// toolCall of a ToolCall part.
	// +optional
	ToolCall *ToolCall `json:"toolCall,omitempty"`

	// toolResult of a ToolResult part.
	// +optional
	ToolResult *ToolResult `json:"toolResult,omitempty"`

	// source of a Source part.
	// +optional
	Source *Source `json:"source,omitempty"`

	// file of a File part.
	// +optional
	File *MessageFile `json:"file,omitempty"`

	// startedAt is when the model began to write a Reasoning part, when it had written a ToolCall, or when a call began to
	// run whose ToolResult this is. Only parts of generated messages have it.
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`

	// finishedAt is when a Reasoning part or a ToolResult was complete. Only parts of generated messages have it.
	// +optional
	FinishedAt *metav1.MicroTime `json:"finishedAt,omitempty"`

	// providerMetadata is what the provider wants back when the history is replayed to it, such as the signature of a
	// reasoning part: JSON, opaque to everybody else.
	// +kubebuilder:validation:MaxLength=262144
	// +optional
	ProviderMetadata string `json:"providerMetadata,omitempty"`
}

// ToolCall is a call that the model asks for.
type ToolCall struct {
	// id of the call, unique within the chat. It has letters, digits, "_" and "-" only.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	ID string `json:"id"`

	// providerID is the id that the provider gave the call, where id is another one: the provider used it before, or it
	// has characters that not every provider takes. The provider gets it back as it was.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// name of the tool.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Name string `json:"name"`

	// input is the JSON object of the arguments, as the model wrote it; "{}" if it wrote nothing or null. Of a call whose
	// refusal is InputInvalid it is what the model wrote instead.
	// +kubebuilder:validation:MaxLength=1048576
	// +optional
	Input string `json:"input,omitempty"`

	// providerExecuted is true for a tool that the provider runs itself; Parley never answers such a call.
	// +optional
	ProviderExecuted bool `json:"providerExecuted,omitempty"`

	// requiresAction says whose action the call requires before Parley can continue: a client's result, or approval.
	// +optional
	RequiresAction RequiredAction `json:"requiresAction,omitempty"`

	// approvalCause is why the call requires approval although no setting does; empty if a setting does.
	// +optional
	ApprovalCause ApprovalCause `json:"approvalCause,omitempty"`

	// refusal is why the call is not run, whatever the chat allows later; absent from a call that may run.
	// +optional
	Refusal CallRefusal `json:"refusal,omitempty"`
}

// CallRefusal is why a call is not run. The model gets the reason as the result.
// +kubebuilder:validation:Enum=NotAllowed;InputTooLarge;InputTruncated;InputInvalid
type CallRefusal string

const (
	// RefusalNotAllowed means that the chat's policy or its mode did not allow the tool when the call was made, so that it
	// is not known whether the call requires approval.
	RefusalNotAllowed CallRefusal = "NotAllowed"
	// RefusalInputTooLarge means that the call requires approval, and that its input has more than MaxPendingInput bytes:
	// people could not see all of what they approve.
	RefusalInputTooLarge CallRefusal = "InputTooLarge"
	// RefusalInputTruncated means that the reply reached its limit of tokens within the input of the call. The input that
	// is kept is an empty object.
	RefusalInputTruncated CallRefusal = "InputTruncated"
	// RefusalInputInvalid means that the input of the call is not a JSON object.
	RefusalInputInvalid CallRefusal = "InputInvalid"
)

// ApprovalCause is why a call requires approval although neither the chat nor the configuration of the model names it.
// +kubebuilder:validation:Enum=ToolChanged;InputRequired;ReviewRequired;PlanProposed;PlanMode
type ApprovalCause string

const (
	// ApprovalToolChanged means that an MCP server describes the tool differently than before: docs/how-to/mcp.md.
	ApprovalToolChanged ApprovalCause = "ToolChanged"
	// ApprovalInputRequired means that the tool asks for input: inputRequests describe it, and content of the ToolApproval
	// is the answer. A call that is denied continues without.
	ApprovalInputRequired ApprovalCause = "InputRequired"
	// ApprovalReviewRequired means that the tool has determined what it would do: proposal describes it, and the tool does
	// exactly that once approved.
	ApprovalReviewRequired ApprovalCause = "ReviewRequired"
	// ApprovalPlanProposed means that the call proposes a plan: docs/how-to/modes.md. A call that is denied has the model
	// continue planning.
	ApprovalPlanProposed ApprovalCause = "PlanProposed"
	// ApprovalPlanMode means that the chat is in mode Plan, and it is unknown whether the call changes something.
	ApprovalPlanMode ApprovalCause = "PlanMode"
)

// RequiredAction is whose action a call requires before Parley can continue.
// +kubebuilder:validation:Enum=Client;Approval
type RequiredAction string

const (
	// RequiresClient means that a client runs the tool and brings the result.
	RequiresClient RequiredAction = "Client"
	// RequiresApproval means that a person must approve the call before Parley runs it.
	RequiresApproval RequiredAction = "Approval"
)

// ToolResult is the result of a tool call.
type ToolResult struct {
	// id of the call that it answers.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	ID string `json:"id"`

	// name of the tool.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Name string `json:"name,omitempty"`

	// output that the model reads.
	// +kubebuilder:validation:MaxLength=1048576
	// +optional
	Output string `json:"output,omitempty"`

	// isError is true when the tool failed; output then says why.
	// +optional
	IsError bool `json:"isError,omitempty"`

	// providerExecuted is true for the result of a tool that the provider ran itself.
	// +optional
	ProviderExecuted bool `json:"providerExecuted,omitempty"`
}

// Source is a source that the provider cites.
type Source struct {
	// id that the provider gave it.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	ID string `json:"id,omitempty"`

	// url of the source.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	URL string `json:"url,omitempty"`

	// title of the source.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Title string `json:"title,omitempty"`
}
