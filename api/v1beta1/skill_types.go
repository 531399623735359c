// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// SkillSource names a ConfigMap that is a skill: its key SKILL.md has the instructions, which may begin with a front
// matter of name and description. The other keys, of data and of binaryData, are files of the skill.
type SkillSource struct {
	// configMapRef names the ConfigMap, in the same namespace.
	// +required
	ConfigMapRef ConfigMapReference `json:"configMapRef"`

	// items puts keys at paths, as in a volume of a ConfigMap: the skill then has the files that are named here, and no
	// others. Where none of them is at SKILL.md, the key of that name is. Default: each key is a file of its name.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=path
	// +optional
	Items []SkillItem `json:"items,omitempty"`

	// optional lets the chat continue without the skill when the ConfigMap or its SKILL.md does not exist, and without a
	// file whose key does not. Default false: the step fails.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// ConfigMapReference names a ConfigMap in the same namespace.
type ConfigMapReference struct {
	// name of the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="the name of a ConfigMap has lower-case letters, digits, - and . only, and begins and ends with a letter or digit, such as pdf-skill"
	// +required
	Name string `json:"name"`
}

// SkillItem puts a key of a ConfigMap at a path in a skill.
type SkillItem struct {
	// key of the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",message="a key has letters, digits, - . and _ only, such as notes.md"
	// +kubebuilder:validation:XValidation:rule="self != '.' && !self.startsWith('..')",message="a key is neither . nor begins with .."
	// +required
	Key string `json:"key"`

	// path of the file in the skill, such as scripts/fill.py: names of letters, digits, ".", "_" and "-", with slashes
	// between them. None of them begins with a dot.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-_a-zA-Z0-9][-._a-zA-Z0-9]*(/[-_a-zA-Z0-9][-._a-zA-Z0-9]*)*$')",message="path must be relative, such as scripts/fill.py: names of letters, digits, dots, _ and -, none of which begins with a dot"
	// +required
	Path string `json:"path"`
}
