// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ClusterChanges says whether a model may change objects of the cluster, and who approves that.
// +kubebuilder:validation:Enum=Denied;WithApproval;WithoutApproval
type ClusterChanges string

const (
	// ClusterChangesDenied means that the model changes nothing: it is offered no tool for that.
	ClusterChangesDenied ClusterChanges = "Denied"
	// ClusterChangesWithApproval means that a person approves each change, having seen what it does.
	ClusterChangesWithApproval ClusterChanges = "WithApproval"
	// ClusterChangesWithoutApproval means that changes are made at once, unless tools.approval matches the tool.
	ClusterChangesWithoutApproval ClusterChanges = "WithoutApproval"
)

// KubernetesAccess lets the model read objects of the cluster, and change them if that is allowed, as a service account
// of the namespace: with its rights, and no others.
type KubernetesAccess struct {
	// serviceAccountName names the service account of the namespace as which the model works. Whoever writes this must be
	// allowed to impersonate it, and the namespace must let its generation pods have tokens of it:
	// docs/how-to/kubernetes.md.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="the name of a service account has lower-case letters, digits, - and . only, and begins and ends with a letter or digit, such as fixer"
	// +kubebuilder:validation:XValidation:rule="self != 'parley-generation'",message="this is the account of the generation pods: name one of your own"
	// +required
	ServiceAccountName string `json:"serviceAccountName"`

	// changes is whether the model may change objects. Default: Denied.
	// +optional
	Changes ClusterChanges `json:"changes,omitempty"`
}

// MayChange reports whether the model may change objects; nil: it may not.
func (k *KubernetesAccess) MayChange() bool {
	return k != nil && (k.Changes == ClusterChangesWithApproval || k.Changes == ClusterChangesWithoutApproval)
}

// KubernetesReason is why a model could not work in the cluster, although its chat lets it.
// +kubebuilder:validation:Enum=TokenForbidden;TokenFailed
type KubernetesReason string

const (
	// KubernetesTokenForbidden means that the generation pods of the namespace may not have tokens of the service account.
	KubernetesTokenForbidden KubernetesReason = "TokenForbidden"
	// KubernetesTokenFailed means that the API server gave no token of the service account for another reason, such as
	// that there is no such account.
	KubernetesTokenFailed KubernetesReason = "TokenFailed"
)

// KubernetesUnavailable is why a model could not work in the cluster when it was asked.
type KubernetesUnavailable struct {
	// reason in a word.
	// +required
	Reason KubernetesReason `json:"reason"`

	// message for people: what is wrong, and what to do.
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Message string `json:"message"`
}

// Tools that work with objects of the cluster. They are offered to chats with kubernetes.
const (
	// BuiltInK8sGet reads an object.
	BuiltInK8sGet BuiltInTool = "k8s_get"
	// BuiltInK8sList lists objects, as kubectl does.
	BuiltInK8sList BuiltInTool = "k8s_list"
	// BuiltInK8sDescribe reads an object with its events and its pods.
	BuiltInK8sDescribe BuiltInTool = "k8s_describe"
	// BuiltInK8sLogs reads what a container has written.
	BuiltInK8sLogs BuiltInTool = "k8s_logs"
	// BuiltInK8sEvents reads events, the newest first.
	BuiltInK8sEvents BuiltInTool = "k8s_events"
	// BuiltInK8sApply creates and changes objects. It is offered where kubernetes.changes lets it.
	BuiltInK8sApply BuiltInTool = "k8s_apply"
	// BuiltInK8sDelete deletes an object. It is offered where kubernetes.changes lets it.
	BuiltInK8sDelete BuiltInTool = "k8s_delete"
)
