// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

const (
	// MaxPriorMessages is the most messages that one ChatMessage.spec.history holds.
	MaxPriorMessages = 1024
	// MaxPriorCalls is the most calls, results, or files that one of them holds.
	MaxPriorCalls = 128
)

// PriorMessage is a message of a conversation that was led elsewhere. The model is told it as if it had been of this
// chat. Nothing in it is run, fetched, priced, or counted.
type PriorMessage struct {
	// role is who spoke.
	// +kubebuilder:validation:XValidation:rule="self != 'System'",message="role in history must be User, Assistant or Tool: give what a system says as the chat's systemPrompt"
	// +required
	Role MessageRole `json:"role"`

	// content is the text.
	// +kubebuilder:validation:MaxLength=1048576
	// +optional
	Content string `json:"content,omitempty"`

	// files that a User gave.
	// +kubebuilder:validation:MaxItems=128
	// +listType=atomic
	// +optional
	Files []PriorFile `json:"files,omitempty"`

	// toolCalls that an Assistant made. The model is told of one without a result that it was cancelled.
	// +kubebuilder:validation:MaxItems=128
	// +listType=atomic
	// +optional
	ToolCalls []PriorToolCall `json:"toolCalls,omitempty"`

	// toolResults of calls before it, of a Tool message.
	// +kubebuilder:validation:MaxItems=128
	// +listType=atomic
	// +optional
	ToolResults []ToolResult `json:"toolResults,omitempty"`
}

// PriorFile is a file of an earlier conversation, with its content.
type PriorFile struct {
	// name of the file, as the model reads it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1F\x7F/\\]+$`
	// +required
	Name string `json:"name"`

	// mediaType of the content, as in a message's own files.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=127
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*$`
	// +required
	MediaType string `json:"mediaType"`

	// data is the content in base64, as in a message's own files.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=716800
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9+/]+={0,2}$`
	// +required
	Data string `json:"data"`
}

// PriorToolCall is a call of an earlier conversation.
type PriorToolCall struct {
	// id that results name it by.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	ID string `json:"id"`

	// name of the tool.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Name string `json:"name"`

	// input is the JSON object of the arguments.
	// +kubebuilder:validation:MaxLength=1048576
	// +optional
	Input string `json:"input,omitempty"`
}

// LastRole is who spoke last: in the history of a message that has one; else who speaks in the message.
func (s *ChatMessageSpec) LastRole() MessageRole {
	if n := len(s.History); n > 0 {
		return s.History[n-1].Role
	}
	return s.Role
}
