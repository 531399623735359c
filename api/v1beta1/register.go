// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds Parley's resources: Chat, ChatMessage, ChatModelConfig, ToolApproval, ChatQuota,
// ClusterChatQuota and ChatDebugStep.
//
// The package is the contract with users: every field is bounded, every condition type and reason that the operator
// ever sets is a documented constant here, and whatever one object can check about itself is checked by the API server
// from the markers below. It imports nothing of Parley's own.
//
// +kubebuilder:object:generate=true
// +groupName=parley.dev
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the API group and version of the resources in this package.
	GroupVersion = schema.GroupVersion{Group: "parley.dev", Version: "v1beta1"}

	// SchemeBuilder collects the functions that add this package's types to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds this package's types to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Chat{}, &ChatList{},
		&ChatMessage{}, &ChatMessageList{},
		&ChatModelConfig{}, &ChatModelConfigList{},
		&ChatClass{}, &ChatClassList{},
		&ToolApproval{}, &ToolApprovalList{},
		&ChatQuota{}, &ChatQuotaList{},
		&ClusterChatQuota{}, &ClusterChatQuotaList{},
		&ChatDebugStep{}, &ChatDebugStepList{},
		&Workspace{}, &WorkspaceList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
