// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// MaxDebugTextRunes is the most characters of one text of a recorded request: 10000.
	MaxDebugTextRunes = 10000
	// MaxDebugReplyBytes is the most bytes of a recorded reply's texts together: 50000.
	MaxDebugReplyBytes = 50000
	// MaxDebugBodyBytes is the most bytes of a recorded HTTP body:
	// 50000. A longer one is left out, or cut where it has lines.
	MaxDebugBodyBytes = 50000
	// MaxDebugStepBytes is the most bytes of a recording as JSON: 512 KiB, far below what etcd takes.
	MaxDebugStepBytes = 512 << 10
)

// DebugState is how a call stands.
// +kubebuilder:validation:Enum=InProgress;Interrupted;Error;Completed
type DebugState string

const (
	// DebugInProgress means that the call is under way.
	DebugInProgress DebugState = "InProgress"
	// DebugInterrupted means that the call was stopped: by a person, because the chat has moved on, or with its pod.
	DebugInterrupted DebugState = "Interrupted"
	// DebugError means that the call failed.
	DebugError DebugState = "Error"
	// DebugCompleted means that the reply was read to its end.
	DebugCompleted DebugState = "Completed"
)

// DebugPartType is the type of a recorded part.
// +kubebuilder:validation:Enum=Text;Reasoning;ToolCall;ToolResult;File;Source
type DebugPartType string

// The types of recorded parts. What each holds is said at DebugPart.
const (
	DebugText       DebugPartType = "Text"
	DebugReasoning  DebugPartType = "Reasoning"
	DebugToolCall   DebugPartType = "ToolCall"
	DebugToolResult DebugPartType = "ToolResult"
	DebugFile       DebugPartType = "File"
	DebugSource     DebugPartType = "Source"
)

// DebugRecording is the recording of one model call with all its attempts. Keys are redacted; texts are those of the
// conversation.
type DebugRecording struct {
	// chatRef names the chat.
	// +required
	ChatRef ChatReference `json:"chatRef"`

	// chatUID of the chat.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	ChatUID string `json:"chatUID"`

	// historyVersion of the chat that the call was made for; its reply, if it was committed, made the next one.
	// +kubebuilder:validation:Minimum=0
	// +required
	HistoryVersion int64 `json:"historyVersion"`

	// turn that the call was part of.
	// +optional
	Turn *DebugTurn `json:"turn,omitempty"`

	// head is the name of the newest message of the history that the call was made for.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Head string `json:"head,omitempty"`

	// action that made the call.
	// +required
	Action GenerationAction `json:"action"`

	// call counts the model calls of the action, from 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +required
	Call int32 `json:"call"`

	// model that was called.
	// +required
	Model ModelIdentity `json:"model"`

	// pod that has written last.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Pod string `json:"pod"`

	// attempt is the newest attempt; request, response and error are its.
	// +kubebuilder:validation:Minimum=1
	// +required
	Attempt int32 `json:"attempt"`

	// state is how the newest attempt stands.
	// +required
	State DebugState `json:"state"`

	// startedAt is when the first attempt began.
	// +required
	StartedAt metav1.MicroTime `json:"startedAt"`

	// finishedAt is when the newest attempt ended; absent while it is under way.
	// +optional
	FinishedAt *metav1.MicroTime `json:"finishedAt,omitempty"`

	// request is what was asked, in no provider's words.
	// +required
	Request DebugRequest `json:"request"`

	// response is what came back, in no provider's words; absent as long as nothing did.
	// +optional
	Response *DebugResponse `json:"response,omitempty"`

	// error is why the newest attempt failed.
	// +optional
	Error *DebugFault `json:"error,omitempty"`

	// cost of the newest attempt, by the prices of its ChatModelConfig; absent where those or the usage are not known.
	// +optional
	Cost *Cost `json:"cost,omitempty"`

	// attempts of the call, oldest first; of more than 32, the newest.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=number
	// +optional
	Attempts []DebugAttempt `json:"attempts,omitempty"`
}

// DebugTurn is the turn that a call was part of. Calls of one message and version belong together.
type DebugTurn struct {
	// message is the name of the User message that the turn answers.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Message string `json:"message"`

	// version of the history with which the turn began: a message that was edited has another turn.
	// +kubebuilder:validation:Minimum=0
	// +required
	Version int64 `json:"version"`

	// createdBy is who created that message, as its annotation parley.dev/created-by says; absent where it does not.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	CreatedBy string `json:"createdBy,omitempty"`
}

// DebugFault is the class of an error, without a word of the provider.
type DebugFault struct {
	// reason is the class of the error.
	// +required
	Reason ErrorReason `json:"reason"`

	// statusCode is the HTTP status of the provider's answer, when there was one.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999
	// +optional
	StatusCode int32 `json:"statusCode,omitempty"`

	// retryable is whether the same call may succeed later.
	// +optional
	Retryable bool `json:"retryable,omitempty"`
}

// DebugAttempt is one attempt of a call.
type DebugAttempt struct {
	// number of the attempt, as in the chat's status.generation.attempt.
	// +kubebuilder:validation:Minimum=1
	// +required
	Number int32 `json:"number"`

	// pod that made it.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Pod string `json:"pod"`

	// model that was called: another one than at first, where a fallback was.
	// +required
	Model ModelIdentity `json:"model"`

	// state is how it stands.
	// +required
	State DebugState `json:"state"`

	// startedAt is when it began.
	// +required
	StartedAt metav1.MicroTime `json:"startedAt"`

	// finishedAt is when it ended.
	// +optional
	FinishedAt *metav1.MicroTime `json:"finishedAt,omitempty"`

	// error is why it failed.
	// +optional
	Error *DebugFault `json:"error,omitempty"`

	// exchanges are its HTTP requests in order: one, unless the provider redirects; of more than 8, the first.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=number
	// +optional
	Exchanges []DebugExchange `json:"exchanges,omitempty"`
}

// ChatDebugStep is a recording of one model call, made by a generation pod while debugging is on. It holds what the
// conversation holds; who may read it sees prompts and replies. It goes with its chat, or when its annotation
// parley.dev/expires-at says so. Like an Event it has neither spec nor status: nothing is wanted of it, and it is
// written as a whole.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=cds
// +kubebuilder:selectablefield:JSONPath=`.chatRef.name`
// +kubebuilder:printcolumn:name="Chat",type=string,JSONPath=`.chatRef.name`,priority=1
// +kubebuilder:printcolumn:name="Turn",type=string,JSONPath=`.turn.message`,priority=1
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=`.action`
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.model.name`,priority=1
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.state`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.error.reason`
// +kubebuilder:printcolumn:name="Tokens",type=integer,JSONPath=`.response.usage.totalTokens`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ChatDebugStep struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	DebugRecording `json:",inline"`
}

// ChatDebugStepList is a list of ChatDebugSteps.
// +kubebuilder:object:root=true
type ChatDebugStepList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ChatDebugStep `json:"items"`
}
