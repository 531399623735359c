// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ShareKind is the kind of a reader of a chat, as subjects of a RoleBinding have it.
// +kubebuilder:validation:Enum=User;Group;ServiceAccount
type ShareKind string

// ShareUser, ShareGroup and ShareServiceAccount are the kinds of readers.
const (
	ShareUser           ShareKind = "User"
	ShareGroup          ShareKind = "Group"
	ShareServiceAccount ShareKind = "ServiceAccount"
)

// ChatShare lets one reader read a chat.
// +kubebuilder:validation:XValidation:rule="!has(self.__namespace__) || self.kind == 'ServiceAccount'",message="only a ServiceAccount has a namespace: leave namespace out"
// +kubebuilder:validation:XValidation:rule="self.kind != 'ServiceAccount' || self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="the name of a service account has lower-case letters, digits, - and . only, and begins and ends with a letter or digit, such as fixer"
type ChatShare struct {
	// kind of the reader.
	// +required
	Kind ShareKind `json:"kind"`

	// name of the user, the group or the service account, as the API server knows it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// namespace of the service account. Default: that of the chat. For two accounts of the same name, name one as the user
	// system:serviceaccount:NAMESPACE:NAME.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a namespace has lower-case letters, digits and - only, and begins and ends with a letter or digit, such as team-a"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// until is when the reader loses access. Default: when the entry is removed.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// Describe names the reader, and until when access lasts.
func (s *ChatShare) Describe() string {
	text := string(s.Kind) + " " + s.Name
	if s.Namespace != "" {
		text += " of namespace " + s.Namespace
	}
	if s.Until != nil {
		text += " until " + s.Until.UTC().Format(time.RFC3339)
	}
	return text
}
