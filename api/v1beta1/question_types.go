// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

const (
	// MaxToolQuestions is how many calls of a batch can ask people: 8.
	MaxToolQuestions = 8
	// MaxInputRequests is how many bytes the requests for input of one have: 8 KiB.
	MaxInputRequests = 8 << 10
	// MaxProposal is how many bytes the proposal of one has: 16 KiB.
	MaxProposal = 16 << 10
	// MaxQuestionState is how many bytes the state of its tool has: 32 KiB.
	MaxQuestionState = 32 << 10
)

// ToolQuestion is a call that asks people before it continues.
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.proposal)",message="a call asks for input or for approval, not for both"
type ToolQuestion struct {
	// id of the call.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	ID string `json:"id"`

	// name of the tool.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Name string `json:"name,omitempty"`

	// input is the JSON object of the call's arguments; absent when it has more than 16384 bytes.
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	Input string `json:"input,omitempty"`

	// requests for input by their ids, as the Model Context Protocol has them: JSON.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	Requests string `json:"requests,omitempty"`

	// proposal is what the call will do if people approve of it.
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	Proposal string `json:"proposal,omitempty"`

	// toolState is what the tool wants back with the answer, opaque to everybody else. Its name is its own: the column
	// State of kubectl shows whatever is called state.
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	ToolState string `json:"toolState,omitempty"`
}

// Cause is why the call waits.
func (q *ToolQuestion) Cause() ApprovalCause {
	if q.Proposal != "" {
		return ApprovalReviewRequired
	}
	return ApprovalInputRequired
}
