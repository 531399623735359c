// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sources reads what a prompt is made of besides the history: the texts that a chat's instructionsFrom names,
// the skills that its skillsFrom names, and the contents of files that messages only name. It reads them for each step,
// so that a change takes effect with the next one; what was fetched from a URL is kept for a while.
//
// A generation pod fetches from no host that the operator's administrator has not allowed: its place in the cluster is
// not that of who wrote the URL. Of a public URL of another host it says so, for the provider to fetch.
package sources

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/netguard/hostlist"
	"parley.dev/parley/internal/netguard/retry"
)

// Options of a Reader. All are required but Hosts, and HTTP where no files are read.
type Options struct {
	// Client reaches the API server as this pod.
	Client *apiclient.Client
	// HTTP fetches URLs.
	HTTP *http.Client
	// Hosts that files may be fetched from, such as files.example.com, files.example.com:8443 or *.example.com; empty:
	// none. One without a port stands for the scheme's own.
	Hosts hostlist.List
	// Forbidden is how long a read that is refused for want of rights is tried again: a new Role takes a moment to hold.
	Forbidden time.Duration
	// Now returns the current time.
	Now func() time.Time
}

// Reader reads ConfigMaps and URLs. It is safe for concurrent use.
type Reader struct {
	options Options
	fetched kept
}

// New returns a reader.
func New(o Options) *Reader { return &Reader{options: o} }

// The fields of a chat that name ConfigMaps.
const (
	instructionsFrom = "instructionsFrom"
	skillsFrom       = "skillsFrom"
)

// MissingError means that a ConfigMap or its key is not there, and that the chat cannot go on without it.
type MissingError struct {
	// Field of the chat that names the ConfigMap.
	Field string
	// ConfigMap, and the key that matters; empty: the ConfigMap as a whole.
	ConfigMap, Key string
	// Why is what is wrong, such as "it has no key x".
	Why string
}

func (e *MissingError) Error() string { return fmt.Sprintf("ConfigMap %s: %s", e.ConfigMap, e.Why) }

// Instructions reads the texts in order; one that is optional and not there is left out. The error is a *MissingError,
// or that of ctx.
func (r *Reader) Instructions(ctx context.Context, namespace string, from []v1alpha1.InstructionsSource) ([]string,
	error) {
	maps := r.maps(namespace)
	var texts []string
	for i := range from {
		ref := from[i].ConfigMapKeyRef
		value, why := maps.value(ctx, ref)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case why == "":
			texts = append(texts, string(value))
		case !from[i].Optional:
			return nil, &MissingError{Field: instructionsFrom, ConfigMap: ref.Name, Key: ref.Key, Why: why}
		}
	}
	return texts, nil
}

// Files reads the files that the messages name, the newest first until a prompt has no room for more. A file that
// cannot be had says why.
func (r *Reader) Files(ctx context.Context, namespace string,
	messages []v1alpha1.ChatMessage) map[prompt.FileKey]prompt.File {
	ctx, cancel := context.WithTimeout(ctx, allFiles)
	defer cancel()
	maps, files, room := r.maps(namespace), map[prompt.FileKey]prompt.File{}, prompt.MaxFilesBytes
	for i := range slices.Backward(messages) {
		for j := range messages[i].Spec.Parts {
			file := messages[i].Spec.Parts[j].File
			if file == nil || messages[i].Spec.Role != v1alpha1.RoleUser {
				continue
			}
			f := r.inRoom(ctx, maps, file, room)
			room -= len(f.Data)
			files[prompt.FileKey{Message: messages[i].Name, Part: j}] = f
		}
	}
	return files
}

// inRoom is the file if there is room left. What is only handed on takes none.
func (r *Reader) inRoom(ctx context.Context, maps *maps, file *v1alpha1.MessageFile, room int) prompt.File {
	if file.URL != "" {
		if left := r.left(file.URL); left != nil {
			return *left
		}
	}
	switch {
	case room <= 0:
		return prompt.File{Problem: "newer files took the room"}
	case len(file.Data) > 0:
		return prompt.InPlace(file)
	}
	return r.file(ctx, maps, file)
}

func (r *Reader) file(ctx context.Context, maps *maps, file *v1alpha1.MessageFile) prompt.File {
	switch {
	case file.ConfigMapKeyRef != nil:
		value, why := maps.value(ctx, *file.ConfigMapKeyRef)
		if why != "" {
			why = "ConfigMap " + file.ConfigMapKeyRef.Name + ": " + why
		}
		return prompt.File{Data: value, Problem: why}
	case file.URL != "":
		return r.fetch(ctx, file.URL)
	}
	return prompt.File{}
}

// maps reads each ConfigMap once.
type maps struct {
	options   *Options
	namespace string
	read      map[string]*apiclient.ConfigMap
	failed    map[string]string
}

func (r *Reader) maps(namespace string) *maps {
	return &maps{&r.options, namespace, map[string]*apiclient.ConfigMap{}, map[string]string{}}
}

// value is the content of a key, or why there is none.
func (m *maps) value(ctx context.Context, ref v1alpha1.ConfigMapKeyReference) (value []byte, why string) {
	if m.read[ref.Name] == nil && m.failed[ref.Name] == "" {
		m.read[ref.Name], m.failed[ref.Name] = m.get(ctx, ref.Name)
	}
	if why := m.failed[ref.Name]; why != "" {
		return nil, why
	}
	value, ok := m.read[ref.Name].Value(ref.Key)
	if !ok {
		return nil, fmt.Sprintf("it has no key %q", ref.Key)
	}
	return value, ""
}

// allFiles bounds the reading of all files of a step.
const allFiles = time.Minute

// get reads a ConfigMap. Trouble with the API server passes: it is asked again until it answers, or ctx is done.
func (m *maps) get(ctx context.Context, name string) (*apiclient.ConfigMap, string) {
	began := m.options.Now()
	isForbidden := func(err error) bool {
		return apierrors.IsForbidden(err) && m.options.Now().Sub(began) >= m.options.Forbidden
	}
	config, err := retry.Do(ctx, retry.APIServer, func(ctx context.Context) (*apiclient.ConfigMap, error) {
		return m.options.Client.ConfigMap(ctx, m.namespace, name)
	}, apierrors.IsNotFound, isForbidden)
	switch {
	case err == nil:
		return config, ""
	case apierrors.IsNotFound(err):
		return nil, "it does not exist"
	case isForbidden(err):
		return nil, "generation pods may not read it"
	}
	return nil, "it could not be read in time"
}
