// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup restores chats from a backup: the objects that kubectl get prints, or a folder of them. The restored
// objects are new ones with other UIDs. uids.go rewrites every field that holds a UID.
package backup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
)

// Backup is the objects of a backup. Those of other kinds are left out. The zero value is an empty backup.
type Backup struct {
	Chats     []v1beta1.Chat
	Messages  []v1beta1.ChatMessage
	Approvals []v1beta1.ToolApproval
	// Settings are the objects that chats depend on.
	Settings []Setting

	// versions are the UID and resourceVersion of each object.
	versions map[string]string
}

// Setting is a ChatModelConfig, ChatClass, ChatQuota or ConfigMap.
type Setting struct {
	header
	// Content is the object in JSON.
	Content []byte
}

// settingKinds are the kinds of Setting in the order in which they are restored: each may refer to those before it.
var settingKinds = []string{"ConfigMap", "ChatModelConfig", "ChatClass", "ChatQuota"}

// Parse reads a backup in YAML or JSON.
func Parse(from io.Reader) (*Backup, error) {
	b := &Backup{}
	return b, b.Add(from)
}

// Add adds the objects of a file in YAML or JSON.
func (b *Backup) Add(from io.Reader) error {
	decoder := yaml.NewYAMLOrJSONDecoder(from, 4096)
	for {
		var document runtime.RawExtension
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && len(document.Raw) > 0 {
			err = b.addObject(document.Raw)
		}
		if err != nil {
			return fmt.Errorf("reading an object: %w", err)
		}
	}
}

// header is what objects of all kinds have. Items are those of a list.
type header struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Items           []json.RawMessage `json:"items"`
}

func (b *Backup) addObject(object []byte) error {
	var h header
	if err := json.Unmarshal(object, &h); err != nil {
		return err
	}
	for _, item := range h.Items {
		if err := b.addObject(item); err != nil {
			return err
		}
	}
	if isKnown, err := b.isKnown(&h); err != nil || isKnown {
		return err
	}
	if err := b.addKind(&h, object); err != nil {
		return fmt.Errorf("%s %s: %w", h.Kind, h.Metadata.Name, err)
	}
	return nil
}

// isKnown notes the object, and reports whether the backup has it already: in Velero's archives each object is a file
// in two folders.
func (b *Backup) isKnown(h *header) (bool, error) {
	key := strings.Join([]string{h.APIVersion, h.Kind, h.Metadata.Namespace, h.Metadata.Name}, "/")
	version := versionOf(&h.Metadata)
	before, found := b.versions[key]
	if found && before != version && h.Metadata.Name != "" {
		return true, fmt.Errorf("the backup contains %s %s twice, and the two differ: restore one backup at a time", h.Kind,
			h.Metadata.Name)
	}
	if b.versions == nil {
		b.versions = map[string]string{}
	}
	b.versions[key] = version
	return found, nil
}

func (b *Backup) addKind(h *header, object []byte) error {
	version, isParleys := strings.CutPrefix(h.APIVersion, v1beta1.GroupVersion.Group+"/")
	switch {
	case isParleys && version != v1beta1.GroupVersion.Version:
		return fmt.Errorf("its version is %s, and this release reads %s", version, v1beta1.GroupVersion.Version)
	case !isParleys && h.APIVersion != "v1":
		return nil
	}
	switch h.Kind {
	case "Chat":
		return addDecoded(&b.Chats, object)
	case "ChatMessage":
		return addDecoded(&b.Messages, object)
	case "ToolApproval":
		return addDecoded(&b.Approvals, object)
	}
	if slices.Contains(settingKinds, h.Kind) && !isOfCluster(h) {
		b.Settings = append(b.Settings, Setting{*h, object})
	}
	return nil
}

// isOfCluster reports whether the object describes its cluster, as a CA and what the manager creates do: another
// cluster has its own.
func isOfCluster(h *header) bool {
	return h.Metadata.Name == "kube-root-ca.crt" || h.Metadata.Labels[podspec.LabelComponent] != ""
}

// addDecoded decodes an object. Fields that this release does not know would be lost.
func addDecoded[T any](to *[]T, object []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.DisallowUnknownFields()
	var decoded T
	if err := decoder.Decode(&decoded); err != nil {
		return fmt.Errorf("%w: use a kubectl chat as new as the release that the backup is from", err)
	}
	*to = append(*to, decoded)
	return nil
}
