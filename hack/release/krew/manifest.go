// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package krew

// manifest is krew's description of a plug-in:
// https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest
type manifest struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       spec     `json:"spec"`
}

type metadata struct {
	Name string `json:"name"`
}

type spec struct {
	Version          string   `json:"version"`
	Homepage         string   `json:"homepage"`
	ShortDescription string   `json:"shortDescription"`
	Description      string   `json:"description"`
	Caveats          string   `json:"caveats"`
	Platforms        []target `json:"platforms"`
}

// target is the archive for a platform.
type target struct {
	Selector selector `json:"selector"`
	URI      string   `json:"uri"`
	SHA256   string   `json:"sha256"`
	Bin      string   `json:"bin"`
}

type selector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// newManifest is the manifest of a version, without platforms.
func newManifest(version string) manifest {
	return manifest{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin",
		Metadata: metadata{Name: "chat"},
		Spec: spec{
			Version: version, Homepage: "https://parley.dev", ShortDescription: "Talk to Parley's AI chats",
			Description: "Talks to the chats of Parley, an operator that drives AI chats as resources of Kubernetes:\n" +
				"sends messages and shows replies as the model says them, approves calls of tools, edits,\n" +
				"exports and imports conversations.\n",
			Caveats: "The cluster needs Parley, and you its role parley-chat-user.\n",
		}}
}
