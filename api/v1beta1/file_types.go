// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"encoding/base64"
	"fmt"
)

// PartFile is a file that a person gives with a message, or that came with the result of a tool.
const PartFile PartType = "File"

// MessageFile is a file that a person gives with a message: its content is in place, in a ConfigMap, at a URL, or in
// the object storage of the installation. A file that cannot be read, or that the model's provider does not take, is
// named to the model as one that is not available.
// +kubebuilder:validation:XValidation:rule="!has(self.data) || self.data.size() % 4 == 0",message="data must be base64, padded with =, in one line: its length is no multiple of 4"
// +kubebuilder:validation:XValidation:rule="[has(self.data), has(self.configMapKeyRef), has(self.url), has(self.stored)].filter(s, s).size() == 1",message="exactly one of data, configMapKeyRef, url and stored must be set"
type MessageFile struct {
	// name of the file, as the model reads it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches(r'^[^[:cntrl:]/\\\\]+$')",message="the name of a file has no slashes and no control characters, such as report.pdf"
	// +required
	Name string `json:"name"`

	// mediaType of the content, such as image/png, application/pdf or text/plain. Images (PNG, JPEG, GIF, WebP) and PDFs
	// go to providers that take them; text is inlined, at most 128 KiB.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=127
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*$')",message="mediaType is a type and a subtype in lower case, such as image/png"
	// +required
	MediaType string `json:"mediaType"`

	// data is the content in base64: the standard alphabet (with + and /),
	// padded with =, in one line. At most 700 KiB of base64.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=716800
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9+/]+={0,2}$`
	// +optional
	Data string `json:"data,omitempty"`

	// configMapKeyRef names a key of a ConfigMap in the same namespace that holds the content, in binaryData or data.
	// +optional
	ConfigMapKeyRef *ConfigMapKeyReference `json:"configMapKeyRef,omitempty"`

	// url of the content. If the operator's administrator allows its host, it is fetched within the cluster, at each step.
	// Else an https URL of a public host is handed to the model's provider, if that fetches files of this type itself; it
	// then is the provider that asks the host. A file that cannot be had is shown to the model as missing,
	// with the reason.
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches(r'^https?://[^/@\\s]+(/\\S*)?$')",message="url begins with https:// or http:// and a host, and has no user and no spaces, such as https://files.example.com/report.pdf"
	// +optional
	URL string `json:"url,omitempty"`

	// stored names content that was uploaded for this chat through the gateway. It is deleted with the chat. A digest
	// that was uploaded for another chat names nothing here.
	// +optional
	Stored *StoredFile `json:"stored,omitempty"`
}

// MaxStoredFileBytes is the size of the largest file that the object storage takes: 3.5 MiB, the most that a model
// reads of a file. In base64 that is less than Anthropic's limit of an image.
const MaxStoredFileBytes = 3584 << 10

// StoredFile names the content of a file in the object storage.
type StoredFile struct {
	// sha256 is the digest of the content in 64 hexadecimal digits, in lower case.
	// +kubebuilder:validation:MinLength=64
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{64}$')",message="sha256 is 64 hexadecimal digits in lower case, as sha256sum prints them"
	// +required
	SHA256 string `json:"sha256"`

	// size of the content in bytes, at most 3.5 MiB.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3670016
	// +required
	Size int64 `json:"size"`
}

// Content is what data holds, decoded; nil if there is no data. The error says what is wrong with the base64.
//
// data is a string and not a []byte, which the schema would call "format: byte": rules of the schema take such a string
// for the alphabet of URLs, and refuse each content whose base64 has a + or a /.
func (f *MessageFile) Content() ([]byte, error) {
	if f.Data == "" {
		return nil, nil
	}
	content, err := base64.StdEncoding.DecodeString(f.Data)
	if err != nil {
		return nil, fmt.Errorf("decode data of file %q: %w", f.Name, err)
	}
	return content, nil
}

// ConfigMapKeyReference names one key of a ConfigMap in the same namespace.
type ConfigMapKeyReference struct {
	// name of the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="the name of a ConfigMap has lower-case letters, digits, - and . only, and begins and ends with a letter or digit, such as notes"
	// +required
	Name string `json:"name"`

	// key of the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",message="a key has letters, digits, - . and _ only, such as notes.md"
	// +kubebuilder:validation:XValidation:rule="self != '.' && !self.startsWith('..')",message="a key is neither . nor begins with .."
	// +required
	Key string `json:"key"`
}

const (
	// MaxInstructions is the most entries that Chat.spec.instructionsFrom has.
	MaxInstructions = 16
	// MaxInstructionsBytes is how much of one entry's text the model reads; the rest is cut off, visibly.
	MaxInstructionsBytes = 64 << 10
)

// InstructionsSource names a text that stands before the conversation, after the system prompt.
type InstructionsSource struct {
	// configMapKeyRef names the key of a ConfigMap in the same namespace that holds the text. The model reads at most 64
	// KiB of it.
	// +required
	ConfigMapKeyRef ConfigMapKeyReference `json:"configMapKeyRef"`

	// optional lets the chat continue without the text when the ConfigMap or its key does not exist. Default false: the
	// step fails.
	// +optional
	Optional bool `json:"optional,omitempty"`
}
