// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WaitFor is what ends a wait of a chat.
// +kubebuilder:validation:Enum=Approval;Answer;ClientResult;ChatModelConfig;ChatClass;Chat;Secret;Message;Edit;Retry;Capacity;Model;Quota;Pod;Workspace;MCPServers;SubChats;Resume;Unarchive;Budget;Restore;ArchiveStore
type WaitFor string

const (
	// WaitForApproval ends when people have decided about tool calls.
	WaitForApproval WaitFor = "Approval"
	// WaitForAnswer ends when people have answered what tool calls ask.
	WaitForAnswer WaitFor = "Answer"
	// WaitForClientResult ends when a client has brought the results of tool calls.
	WaitForClientResult WaitFor = "ClientResult"
	// WaitForModelConfig ends when a ChatModelConfig is created, corrected or enabled.
	WaitForModelConfig WaitFor = "ChatModelConfig"
	// WaitForChatClass ends when a ChatClass is created or changed.
	WaitForChatClass WaitFor = "ChatClass"
	// WaitForChat ends when the parent, or the source of a fork, is created, or when another sub-chat of a full family is
	// deleted or archived.
	WaitForChat WaitFor = "Chat"
	// WaitForSecret ends when a Secret with the API key is created or corrected.
	WaitForSecret WaitFor = "Secret"
	// WaitForMessage ends when the first message, or a copied one, can be created.
	WaitForMessage WaitFor = "Message"
	// WaitForEdit ends when the edit of a message ends, at status.wait.until at the latest.
	WaitForEdit WaitFor = "Edit"
	// WaitForRetry ends when the next attempt begins, at status.wait.until.
	WaitForRetry WaitFor = "Retry"
	// WaitForCapacity ends when fewer chats generate, or a quota allows more: docs/how-to/quotas.md.
	WaitForCapacity WaitFor = "Capacity"
	// WaitForModel ends when a call of the model ends, or the time of a limit or of the provider is over.
	WaitForModel WaitFor = "Model"
	// WaitForQuota ends when the API server accepts a generation pod.
	WaitForQuota WaitFor = "Quota"
	// WaitForPod ends when the generation pod is ready.
	WaitForPod WaitFor = "Pod"
	// WaitForWorkspace ends when the workspace is ready, or has the files that a fork begins with.
	WaitForWorkspace WaitFor = "Workspace"
	// WaitForMCPServers ends when MCP servers are ready, or after a minute.
	WaitForMCPServers WaitFor = "MCPServers"
	// WaitForSubChats ends when other chats of the family are done.
	WaitForSubChats WaitFor = "SubChats"
	// WaitForResume ends when spec.suspend is false.
	WaitForResume WaitFor = "Resume"
	// WaitForUnarchive ends when spec.archived is false.
	WaitForUnarchive WaitFor = "Unarchive"
	// WaitForBudget ends when a budget is raised.
	WaitForBudget WaitFor = "Budget"
	// WaitForRestore ends when the restore of the chat is finished.
	WaitForRestore WaitFor = "Restore"
	// WaitForArchiveStore ends when the object storage accepts the archive of a chat that is to be deleted.
	WaitForArchiveStore WaitFor = "ArchiveStore"
)

// NeedsPerson reports whether the wait ends only when a person does something.
func (w WaitFor) NeedsPerson() bool {
	switch w {
	case WaitForClientResult, WaitForEdit, WaitForRetry, WaitForCapacity, WaitForModel, WaitForPod, WaitForWorkspace,
		WaitForMCPServers, WaitForSubChats, WaitForRestore, WaitForArchiveStore:
		return false
	}
	return w != ""
}

// ChatWait is what a chat waits for. Clients show it as it is.
type ChatWait struct {
	// for is what ends the wait.
	// +required
	For WaitFor `json:"for"`

	// reason is that of condition Ready; of a chat that waits for its archive, that of ArchiveUnavailable.
	// +kubebuilder:validation:MaxLength=64
	// +required
	Reason string `json:"reason"`

	// message says what the chat waits for, why, and what to do. It is that of the same condition.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Message string `json:"message,omitempty"`

	// since is when the wait began.
	// +required
	Since metav1.Time `json:"since"`

	// until is when the wait ends by itself; absent if it does not.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// MaxWaitMessage is how many characters ChatWait.message has: 4096.
const MaxWaitMessage = 4096
