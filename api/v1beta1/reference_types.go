// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ChatReference names a Chat in the same namespace.
type ChatReference struct {
	// name of the Chat.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="the name of a Chat has lower-case letters, digits, - and . only, and begins and ends with a letter or digit, such as triage"
	// +required
	Name string `json:"name"`
}

// ModelConfigReference names a ChatModelConfig in the same namespace.
type ModelConfigReference struct {
	// name of the ChatModelConfig.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="the name of a ChatModelConfig has lower-case letters, digits, - and . only, and begins and ends with a letter or digit, such as default"
	// +required
	Name string `json:"name"`
}

// SecretReference names a Secret in the same namespace.
type SecretReference struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="the name of a Secret has lower-case letters, digits, - and . only, and begins and ends with a letter or digit, such as openai"
	// +required
	Name string `json:"name"`
}

// SecretKeyReference names one key of a Secret in the same namespace.
type SecretKeyReference struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="the name of a Secret has lower-case letters, digits, - and . only, and begins and ends with a letter or digit, such as openai"
	// +required
	Name string `json:"name"`

	// key of the Secret's data that holds the value.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",message="a key has letters, digits, - . and _ only, such as api-key"
	// +kubebuilder:validation:XValidation:rule="self != '.' && !self.startsWith('..')",message="a key is neither . nor begins with .."
	// +required
	Key string `json:"key"`
}
