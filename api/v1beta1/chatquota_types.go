// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Defaults of the limits that no quota sets.
const (
	// DefaultClusterChats is how many chats without a parent generate at once in all namespaces together.
	DefaultClusterChats = 2000
	// DefaultClusterSubChats is how many sub-chats generate at once in all namespaces together.
	DefaultClusterSubChats = 4000
	// DefaultNamespaceChats is how many chats without a parent generate at once in one namespace.
	DefaultNamespaceChats = 500
	// DefaultNamespaceSubChats is how many sub-chats generate at once in one namespace.
	DefaultNamespaceSubChats = 1000
)

// ClusterChatQuotaName is the name of the one ClusterChatQuota that there may be.
const ClusterChatQuotaName = "default"

// GeneratingLimits is how many chats may generate at once. Those beyond wait,
// and what generates already is never cut off.
// +kubebuilder:validation:XValidation:rule="has(self.chats) || has(self.subChats)",message="set chats, subChats or both; 0 lets none generate"
type GeneratingLimits struct {
	// chats without a parent. 0 lets none generate: all wait.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Chats *int32 `json:"chats,omitempty"`

	// subChats are chats with a parent; they count apart, so that a chat cannot wait for its own sub-chats forever. 0 lets
	// none generate: all wait.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	SubChats *int32 `json:"subChats,omitempty"`
}

// ChatQuotaSpec is what the chats of a namespace may use.
// +kubebuilder:validation:XValidation:rule="has(self.generating) || has(self.storedFiles)",message="set generating, storedFiles or both"
type ChatQuotaSpec struct {
	// generating is how many chats of the namespace generate at once. A number that is not set is left to the namespace's
	// other ChatQuotas; if none sets it, ClusterChatQuota's spec.namespaceDefault counts.
	// +optional
	Generating GeneratingLimits `json:"generating,omitzero"`

	// storedFiles is how many bytes the files of the namespace's chats may have in the object storage, such as 5Gi. The
	// gateway refuses an upload beyond it, and with 0 each one. If no ChatQuota sets it, the gateway's --max-stored-files
	// counts.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && !quantity(self).isLessThan(quantity('0'))",message="storedFiles is a quantity of bytes, 0 or more, such as 5Gi"
	// +optional
	StoredFiles string `json:"storedFiles,omitempty"`
}

// ChatQuotaStatus says whether the quota is in force.
type ChatQuotaStatus struct {
	// observedGeneration is the generation of the spec that is in force; -1 until one is.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the quota: Ready.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ChatQuota bounds how many chats of its namespace generate at once, and how large their stored files are together. Of
// several the smallest of each number counts, and the limits of ClusterChatQuota for all namespaces together count in
// addition.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=chatq,categories=llm
// +kubebuilder:printcolumn:name="Chats",type=integer,JSONPath=`.spec.generating.chats`
// +kubebuilder:printcolumn:name="Sub-Chats",type=integer,JSONPath=`.spec.generating.subChats`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ChatQuota struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is what the chats of the namespace may use.
	// +required
	Spec ChatQuotaSpec `json:"spec"`

	// status says whether the quota is in force; only the operator writes it.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +structType=atomic
	// +optional
	Status ChatQuotaStatus `json:"status,omitempty,omitzero"`
}

// ChatQuotaList is a list of ChatQuotas.
// +kubebuilder:object:root=true
type ChatQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ChatQuota `json:"items"`
}

// ClusterChatQuotaSpec is what the chats of all namespaces may use.
type ClusterChatQuotaSpec struct {
	// generating is how many chats of all namespaces together generate at once. Default: 2000 chats and 4000 sub-chats.
	// +optional
	Generating *GeneratingLimits `json:"generating,omitempty"`

	// namespaceDefault is how many chats generate at once in a namespace where no ChatQuota sets the number. Default: 500
	// chats and 1000 sub-chats.
	// +optional
	NamespaceDefault *GeneratingLimits `json:"namespaceDefault,omitempty"`
}

// ClusterChatQuota bounds how many chats generate at once in all namespaces together, and in each namespace that has no
// ChatQuota of its own. There is one at most, named default; without it the defaults of its fields count.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cchatq
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default'",message="a ClusterChatQuota must be named default: there is one for the whole cluster"
// +kubebuilder:printcolumn:name="Chats",type=integer,JSONPath=`.spec.generating.chats`
// +kubebuilder:printcolumn:name="Sub-Chats",type=integer,JSONPath=`.spec.generating.subChats`
// +kubebuilder:printcolumn:name="NS-Chats",type=integer,JSONPath=`.spec.namespaceDefault.chats`
// +kubebuilder:printcolumn:name="NS-Sub-Chats",type=integer,JSONPath=`.spec.namespaceDefault.subChats`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterChatQuota struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is what the chats of all namespaces may use.
	// +required
	Spec ClusterChatQuotaSpec `json:"spec"`

	// status says whether the quota is in force; only the operator writes it.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +structType=atomic
	// +optional
	Status ChatQuotaStatus `json:"status,omitempty,omitzero"`
}

// ClusterChatQuotaList is a list of ClusterChatQuotas.
// +kubebuilder:object:root=true
type ClusterChatQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ClusterChatQuota `json:"items"`
}
