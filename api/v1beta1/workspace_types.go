// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LabelWorkspaceTemplate with the value "true" marks a PodTemplate that workspaces may be made from.
const LabelWorkspaceTemplate = "parley.dev/workspace-template"

const (
	// AnnotationDescription of a workspace template says in a sentence or two what it is for; people and models read it.
	AnnotationDescription = "parley.dev/description"
	// AnnotationParameters of a workspace template is a list of its parameters, in YAML or JSON.
	AnnotationParameters = "parley.dev/parameters"
	// AnnotationDirectory of a workspace template is where the files of the workspace are in its container.
	AnnotationDirectory = "parley.dev/directory"
)

// DefaultWorkspaceDirectory is where the files of a workspace are, unless its template says otherwise.
const DefaultWorkspaceDirectory = "/workspace"

// WorkspaceContainer is the name of the container that commands run in, if a workspace template has several; without
// one of that name it is the first.
const WorkspaceContainer = "workspace"

// WorkspacePhase says where a workspace is in its life. It summarises the condition Ready for people.
// +kubebuilder:validation:Enum=Pending;Starting;Ready;Stopping;Stopped;Failed
type WorkspacePhase string

const (
	// WorkspacePhasePending means that it waits for what it is made of: its template, storage, or leave of the API server.
	WorkspacePhasePending WorkspacePhase = "Pending"
	// WorkspacePhaseStarting means that its pod starts.
	WorkspacePhaseStarting WorkspacePhase = "Starting"
	// WorkspacePhaseReady means that commands run in it.
	WorkspacePhaseReady WorkspacePhase = "Ready"
	// WorkspacePhaseStopping means that its pod is being removed.
	WorkspacePhaseStopping WorkspacePhase = "Stopping"
	// WorkspacePhaseStopped means that it has no pod, as asked.
	WorkspacePhaseStopped WorkspacePhase = "Stopped"
	// WorkspacePhaseFailed means that a person is needed.
	WorkspacePhaseFailed WorkspacePhase = "Failed"
)

// WorkspaceDeletionPolicy says what becomes of the storage of a workspace that is deleted.
// +kubebuilder:validation:Enum=Delete;Retain
type WorkspaceDeletionPolicy string

const (
	// WorkspaceDelete means that the PersistentVolumeClaim goes with the workspace.
	WorkspaceDelete WorkspaceDeletionPolicy = "Delete"
	// WorkspaceRetain means that the PersistentVolumeClaim stays.
	WorkspaceRetain WorkspaceDeletionPolicy = "Retain"
)

// WorkspaceParameter is a value for a parameter of a workspace template.
type WorkspaceParameter struct {
	// name of the parameter.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][-_A-Za-z0-9]*$')",message="the name of a parameter has letters, digits, - and _ only, and begins with a letter, such as greeting"
	// +required
	Name string `json:"name"`

	// value for it, in place of its default. Numbers and booleans are written as such: "4", "true".
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Value string `json:"value"`
}

// WorkspaceStorage is a PersistentVolumeClaim for the files of a workspace. It outlives the pod.
type WorkspaceStorage struct {
	// size of the volume, such as 10Gi. Default: 10Gi.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))",message="size is no quantity above 0, such as 10Gi"
	// +optional
	Size string `json:"size,omitempty"`

	// storageClassName of the volume. Default: the cluster's default class.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="the name of a StorageClass has lower-case letters, digits, - and . only, and begins and ends with a letter or digit, such as fast"
	// +optional
	StorageClassName string `json:"storageClassName,omitempty"`
}

// WorkspaceTemplateReference names a PodTemplate of the namespace, with values for its parameters.
type WorkspaceTemplateReference struct {
	// name of the PodTemplate. It has the label parley.dev/workspace-template=true.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="the name of a PodTemplate has lower-case letters, digits, - and . only, and begins and ends with a letter or digit, such as go"
	// +required
	Name string `json:"name"`

	// parameters of the template. Default: their defaults.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Parameters []WorkspaceParameter `json:"parameters,omitempty"`

	// storage for the workspace's files. Without it they go with the pod.
	// +optional
	Storage *WorkspaceStorage `json:"storage,omitempty"`
}

// DefaultWorkspaceIdleSeconds is how long a workspace runs without being used, unless its chat says otherwise: half an
// hour.
const DefaultWorkspaceIdleSeconds = 1800

// LabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",message="the value of a label has letters, digits, - _ and . only, and begins and ends with a letter or digit, such as go-1.27"
type LabelValue string

// WorkspaceTemplateSelector selects the PodTemplates among which a model chooses.
type WorkspaceTemplateSelector struct {
	// matchLabels are labels that the PodTemplate has, in addition to parley.dev/workspace-template=true. Default: none,
	// so that the model may choose any template of the namespace.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317)",message="a key of matchLabels is longer than the key of a label can be"
	// +optional
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// storage for the workspace's files. Without it they go with the pod.
	// +optional
	Storage *WorkspaceStorage `json:"storage,omitempty"`
}

// WorkspacePodReference names a pod of the namespace that runs Parley's workspace agent.
type WorkspacePodReference struct {
	// name of the Pod. It has the label parley.dev/component=workspace, and belongs to no other workspace or sandbox.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="the name of a Pod has lower-case letters, digits, - and . only, and begins and ends with a letter or digit, such as toolbox"
	// +required
	Name string `json:"name"`
}

// WarmPoolReference names a SandboxWarmPool of the namespace, of the project agent-sandbox.
type WarmPoolReference struct {
	// name of the SandboxWarmPool. The pods of its SandboxTemplate run Parley's workspace agent, and have the label
	// parley.dev/component=workspace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="the name of a SandboxWarmPool has lower-case letters, digits, - and . only, and begins and ends with a letter or digit, such as go"
	// +required
	Name string `json:"name"`
}

// WorkspaceSource says what a workspace is made from, and how long it is kept.
// +kubebuilder:validation:XValidation:rule="has(self.podTemplateRef) || has(self.podTemplateSelector) || has(self.warmPoolRef) || has(self.podRef)",message="set podTemplateRef, which names the PodTemplate that the workspace is made from, podTemplateSelector, among whose PodTemplates the model chooses, warmPoolRef, whose SandboxWarmPool has it, or podRef, which names a Pod that is there"
// +kubebuilder:validation:XValidation:rule="!has(self.podRef) || !has(self.idleSeconds)",message="idleSeconds says when Parley stops a pod; that of podRef is not Parley's, so leave it out"
// +kubebuilder:validation:XValidation:rule="!(has(self.podRef) || has(self.warmPoolRef)) || !has(self.deletionPolicy)",message="deletionPolicy is about storage that Parley creates, which it does for a PodTemplate alone: leave it out"
type WorkspaceSource struct {
	// podTemplateRef names the PodTemplate that the workspace's pod is made from.
	// +optional
	PodTemplateRef *WorkspaceTemplateReference `json:"podTemplateRef,omitempty"`

	// podTemplateSelector lets the model choose, with the tools list_templates, read_template and create_workspace. Until
	// it has chosen, the chat has no workspace. What it chose is status.workspace of the chat.
	// +optional
	PodTemplateSelector *WorkspaceTemplateSelector `json:"podTemplateSelector,omitempty"`

	// warmPoolRef names a SandboxWarmPool, which has pods that run already: the workspace is one of its sandboxes. It
	// needs agent-sandbox (agents.x-k8s.io/v1beta1) in the cluster.
	// +optional
	WarmPoolRef *WarmPoolReference `json:"warmPoolRef,omitempty"`

	// podRef names a Pod that someone else runs, with Parley's workspace agent. It is never stopped or removed.
	// +optional
	PodRef *WorkspacePodReference `json:"podRef,omitempty"`

	// idleSeconds is how long the workspace runs after a chat of the family was last at work, or needed it; then it is
	// stopped, and started again by the next call. 0: it is never stopped. Default: 1800.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	// +optional
	IdleSeconds *int32 `json:"idleSeconds,omitempty"`

	// deletionPolicy is what happens to the storage when the chat is deleted. A change counts at once. Default: Delete.
	// +optional
	DeletionPolicy WorkspaceDeletionPolicy `json:"deletionPolicy,omitempty"`
}

// IdleSecondsOrDefault is how long the workspace runs without being needed; 0: it is never stopped.
func (s *WorkspaceSource) IdleSecondsOrDefault() int32 {
	if s.IdleSeconds == nil {
		return DefaultWorkspaceIdleSeconds
	}
	return *s.IdleSeconds
}

// HasStorage reports whether the files outlive the pod, in a claim that other pods can mount.
func (s *WorkspaceSource) HasStorage() bool {
	return s != nil && s.PodTemplateRef != nil && s.PodTemplateRef.Storage != nil
}

// WorkspaceSpec is what a workspace is to be.
// +kubebuilder:validation:XValidation:rule="[has(self.source.podTemplateRef), has(self.source.warmPoolRef), has(self.source.podRef)].filter(s, s).size() == 1",message="source needs one of podTemplateRef, warmPoolRef and podRef: a workspace is one pod"
// +kubebuilder:validation:XValidation:rule="has(self.source.podRef) == has(oldSelf.source.podRef) && has(self.source.warmPoolRef) == has(oldSelf.source.warmPoolRef) && (!has(self.source.warmPoolRef) || self.source.warmPoolRef == oldSelf.source.warmPoolRef)",message="a workspace cannot move between a template, a pool and a pod, nor to another pool: its files would stay behind. Create a new chat"
// +kubebuilder:validation:XValidation:rule="self.chatRef == oldSelf.chatRef",message="chatRef cannot change: a workspace belongs to one chat for ever"
type WorkspaceSpec struct {
	// chatRef names the chat that the workspace belongs to, the root of its family. It cannot change.
	// +required
	ChatRef ChatReference `json:"chatRef"`

	// source is what the workspace is made from.
	// +required
	Source WorkspaceSource `json:"source"`

	// suspend keeps the workspace from having a pod, whoever needs it. Its storage stays. Default: false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// copyFrom is the UID of the Workspace of the namespace whose files are copied to the storage before the first pod
	// starts. Once status.copiedFrom is the same, it has no effect.
	// +kubebuilder:validation:MaxLength=36
	// +optional
	CopyFrom string `json:"copyFrom,omitempty"`

	// neededAt is when a chat of the family last needed it. It is stopped source.idleSeconds later, and started when this
	// is set again. It is stopped, too, as long as the chat's status.workspace.stoppedAt is not before it.
	// +optional
	NeededAt *metav1.MicroTime `json:"neededAt,omitempty"`
}

// WorkspacePod is the pod of a workspace.
type WorkspacePod struct {
	// name of the pod.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// uid of the pod. Tokens for its agent are meant for it.
	// +kubebuilder:validation:MaxLength=36
	// +required
	UID string `json:"uid"`
	// address that its agent listens at, an IP address. It is absent until the pod has one.
	// +kubebuilder:validation:MaxLength=45
	// +optional
	Address string `json:"address,omitempty"`
}

// WorkspaceStatus is what has become of a workspace.
type WorkspaceStatus struct {
	// observedGeneration is the generation of the spec that the status speaks of; -1 until one has been seen.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase summarises the condition Ready for people.
	// +optional
	Phase WorkspacePhase `json:"phase,omitempty"`

	// pod that runs, or starts, or that podRef names. Commands run in it while the phase is Ready.
	// +optional
	Pod *WorkspacePod `json:"pod,omitempty"`

	// directory of the workspace's files in its container.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Directory string `json:"directory,omitempty"`

	// claim is the name of the PersistentVolumeClaim that holds the files.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Claim string `json:"claim,omitempty"`

	// copiedFrom is the UID of the Workspace whose files were copied to the claim.
	// +kubebuilder:validation:MaxLength=36
	// +optional
	CopiedFrom string `json:"copiedFrom,omitempty"`

	// sandbox is the name of the Sandbox that the workspace has of its SandboxWarmPool.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Sandbox string `json:"sandbox,omitempty"`

	// template is the hash of what the pod was made from.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Template string `json:"template,omitempty"`

	// conditions of the workspace: Ready, Reconciling, Stalled.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Workspace is the place where the models of a chat, and of its sub-chats, have their files and run their commands: a
// pod, and storage that outlives it. The operator creates it when the first call needs it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ws,categories=llm
// +kubebuilder:selectablefield:JSONPath=`.spec.chatRef.name`
// +kubebuilder:printcolumn:name="Template",type=string,JSONPath=`.spec.source.podTemplateRef.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Pod",type=string,JSONPath=`.status.pod.name`,priority=1
// +kubebuilder:printcolumn:name="Sandbox",type=string,JSONPath=`.status.sandbox`,priority=1
// +kubebuilder:printcolumn:name="Needed",type=date,JSONPath=`.spec.neededAt`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Workspace struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is what the workspace is to be.
	// +required
	Spec WorkspaceSpec `json:"spec"`

	// status is what has become of it; only the operator writes it.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +structType=atomic
	// +optional
	Status WorkspaceStatus `json:"status,omitempty,omitzero"`
}

// IsCopying reports whether the files of another workspace have yet to be copied to the storage.
func (w *Workspace) IsCopying() bool {
	return w.Spec.CopyFrom != "" && w.Status.CopiedFrom != w.Spec.CopyFrom
}

// WorkspaceList is a list of Workspaces.
// +kubebuilder:object:root=true
type WorkspaceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Workspace `json:"items"`
}
