// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ApprovalDecision is what a person decides about a tool call.
// +kubebuilder:validation:Enum=Approve;Deny
type ApprovalDecision string

const (
	// DecisionApprove lets Parley run the call.
	DecisionApprove ApprovalDecision = "Approve"
	// DecisionDeny answers the call with a result that says that it was denied.
	DecisionDeny ApprovalDecision = "Deny"
)

// ToolApprovalSpec is a decision about one tool call. It cannot change.
// +kubebuilder:validation:XValidation:rule="self.decision != 'Approve' || has(self.digest)",message="digest is required to approve a call: copy it from the call in status.requiresAction.toolCalls of the chat"
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a decision cannot change: delete the message that called the tool to have it decided again"
// +kubebuilder:validation:XValidation:rule="!has(self.content) || self.decision == 'Approve'",message="content is the input of a call that is approved: leave it out"
type ToolApprovalSpec struct {
	// chatRef names the chat whose status.requiresAction lists the call.
	// +required
	ChatRef ChatReference `json:"chatRef"`

	// toolCallID is the id of the call.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	ToolCallID string `json:"toolCallID"`

	// decision is Approve or Deny.
	// +required
	Decision ApprovalDecision `json:"decision"`

	// digest of the call that the person has seen, from status.requiresAction.toolCalls of the chat.
	// A decision with the digest of another call does not apply. Required to approve a call; a call can be denied without.
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:XValidation:rule="self.matches('^sha256:[0-9a-f]{64}$')",message="digest is sha256: and 64 hexadecimal digits: copy it from status.requiresAction.toolCalls of the chat"
	// +optional
	Digest string `json:"digest,omitempty"`

	// comment is for the record; when the call is denied, the model reads it.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Comment string `json:"comment,omitempty"`

	// content is the input that the tool asks for, where approvalCause of the call is InputRequired: a JSON object as the
	// schema in its inputRequests says, or of such objects by the ids of the requests if there are several.
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self.matches(r'^\\s*[{]') && self.matches(r'[}]\\s*$')",message="content must be a JSON object, such as {\"name\": \"x\"}"
	// +optional
	Content string `json:"content,omitempty"`
}

// ToolApprovalStatus says what became of the decision.
type ToolApprovalStatus struct {
	// observedGeneration is the generation of the spec that this status describes; -1 until it has been seen.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the decision: Ready, Reconciling, Stalled.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ToolApproval approves or denies one tool call that waits in Chat.status.requiresAction. It is a kind of its own, so
// that the right to approve can be given to other people than the right to chat.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=llm
// +kubebuilder:selectablefield:JSONPath=`.spec.chatRef.name`
// +kubebuilder:printcolumn:name="Chat",type=string,JSONPath=`.spec.chatRef.name`
// +kubebuilder:printcolumn:name="Call",type=string,JSONPath=`.spec.toolCallID`,priority=1
// +kubebuilder:printcolumn:name="Decision",type=string,JSONPath=`.spec.decision`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ToolApproval struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the decision.
	// +required
	Spec ToolApprovalSpec `json:"spec"`

	// status says what became of it; only the operator writes it.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +structType=atomic
	// +optional
	Status ToolApprovalStatus `json:"status,omitempty,omitzero"`
}

// ToolApprovalList is a list of ToolApprovals.
// +kubebuilder:object:root=true
type ToolApprovalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ToolApproval `json:"items"`
}
