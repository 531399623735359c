// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sources reads the parts of a prompt that are not in the history: the texts of a chat's instructionsFrom, the
// skills of its skillsFrom, and the files that messages refer to. It reads them for each step, so that changes take
// effect with the next one, but caches files from URLs for a while.
//
// A generation pod fetches only from hosts that the administrator has allowed, because it can reach more of the cluster
// than the author of the URL. Public URLs of other hosts are for the provider to fetch.
package sources

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/netguard/hostlist"
	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/text/skill"
)

// Options of a Reader. All are required but Hosts and Gateway, and HTTP where no files are read.
type Options struct {
	Client *apiclient.Client
	HTTP   *http.Client
	// Gateway has the stored files; nil: there are none.
	Gateway *Gateway
	// Hosts that files may be fetched from, such as files.example.com, files.example.com:8443 or *.example.com; empty:
	// none. The default port is that of the scheme.
	Hosts hostlist.List
	// Forbidden is how long forbidden reads are retried: a new Role takes a moment to become effective.
	Forbidden time.Duration
	Now       func() time.Time
}

// Reader reads ConfigMaps and URLs. It is safe for concurrent use.
type Reader struct {
	options Options
	fetched kept
}

// filesTimeout limits the reading of all files of a step.
const filesTimeout = time.Minute

// New returns a reader.
func New(o Options) *Reader { return &Reader{options: o} }

// MissingError means that a required ConfigMap or its key is missing.
type MissingError struct {
	// Field of the chat that names the ConfigMap.
	Field string
	// Key is empty if the whole ConfigMap is missing.
	ConfigMap, Key string
	// Why is the problem, such as "it has no key x".
	Why string
}

// Error implements error.
func (e *MissingError) Error() string { return fmt.Sprintf("ConfigMap %s: %s", e.ConfigMap, e.Why) }

// Instructions reads the texts in order, without missing optional ones. The error is a *MissingError, or that of ctx.
func (r *Reader) Instructions(ctx context.Context, namespace string, from []v1beta1.InstructionsSource) ([]string,
	error) {
	maps := r.configMaps(namespace)
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
			return nil, &MissingError{Field: "instructionsFrom", ConfigMap: ref.Name, Key: ref.Key, Why: why}
		}
	}
	return texts, nil
}

// Files reads the files that the messages refer to, the newest first within the limits of a prompt. A file without
// content has a problem. It fails with a GatewayError if the gateway does not hand out the stored ones: the model would
// answer without them.
func (r *Reader) Files(ctx context.Context, namespace string,
	messages []v1beta1.ChatMessage) (map[prompt.FileKey]prompt.File, error) {
	ctx, cancel := context.WithTimeout(ctx, filesTimeout)
	defer cancel()
	maps, files, room := r.configMaps(namespace), map[prompt.FileKey]prompt.File{}, prompt.MaxFilesBytes
	for i := range slices.Backward(messages) {
		for j := range messages[i].Spec.Parts {
			file := messages[i].Spec.Parts[j].File
			if file == nil || messages[i].Spec.Role != v1beta1.RoleUser {
				continue
			}
			f, err := r.file(ctx, maps, messages[i].Spec.ChatRef.Name, file, room)
			if err != nil {
				return nil, err
			}
			room -= len(f.Data)
			files[prompt.FileKey{Message: messages[i].Name, Part: j}] = f
		}
	}
	return files, nil
}

// MaxBytes is the most bytes that the content of a file has in the pod, before it is read.
func (r *Reader) MaxBytes(file *v1beta1.MessageFile) int {
	switch {
	case file.URL != "" && r.notFetched(file.URL) != nil:
		return 0
	case file.Stored != nil:
		return int(min(file.Stored.Size, prompt.MaxFileBytes))
	case file.ConfigMapKeyRef != nil:
		return 1 << 20 // No ConfigMap has more.
	case file.URL != "":
		return prompt.MaxFileBytes
	}
	return base64.StdEncoding.DecodedLen(len(file.Data))
}

// file is the file if there is room. A file that the provider fetches takes none.
func (r *Reader) file(ctx context.Context, maps *configMaps, chat string, file *v1beta1.MessageFile,
	room int) (prompt.File, error) {
	if file.URL != "" {
		if f := r.notFetched(file.URL); f != nil {
			return *f, nil
		}
	}
	switch {
	case room <= 0:
		return prompt.File{Problem: "newer files took the room"}, nil
	case len(file.Data) > 0:
		return prompt.InPlace(file), nil
	case file.ConfigMapKeyRef != nil:
		value, why := maps.value(ctx, *file.ConfigMapKeyRef)
		if why != "" {
			why = "ConfigMap " + file.ConfigMapKeyRef.Name + ": " + why
		}
		return prompt.File{Data: value, Problem: why}, nil
	case file.URL != "":
		return r.fetch(ctx, file.URL), nil
	case file.Stored != nil:
		return r.stored(ctx, maps.namespace, chat, file.Stored)
	}
	return prompt.File{}, nil
}

// configMaps reads each ConfigMap once.
type configMaps struct {
	options   *Options
	namespace string
	read      map[string]*apiclient.ConfigMap
	failed    map[string]string
}

func (r *Reader) configMaps(namespace string) *configMaps {
	return &configMaps{&r.options, namespace, map[string]*apiclient.ConfigMap{}, map[string]string{}}
}

// value is the content of a key, or the problem.
func (m *configMaps) value(ctx context.Context, ref v1beta1.ConfigMapKeyReference) (value []byte, why string) {
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

// get reads a ConfigMap, or returns the problem. It retries errors of the API server until ctx is done.
func (m *configMaps) get(ctx context.Context, name string) (*apiclient.ConfigMap, string) {
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

// Skills are those of the ConfigMaps, in their order, without missing optional ones. They have names and descriptions;
// their files are read on request. The error is a *MissingError, or that of ctx.
func (r *Reader) Skills(ctx context.Context, namespace string, from []v1beta1.SkillSource) ([]skill.Skill, error) {
	var all []skill.Skill
	var names skill.Names
	for i := range from {
		source := &from[i]
		files, err := r.skillFiles(ctx, namespace, source)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && !source.Optional:
			return nil, err
		case err != nil:
			continue
		}
		about := skill.Parse(files[skill.MainFile])
		all = append(all, skill.Skill{
			Source: skill.FromConfigMap, Name: names.Next(about.Name, source.ConfigMapRef.Name), Description: about.Description,
			Main: skill.MainFile,
			Files: func(ctx context.Context) ([]string, bool, error) {
				files, err := r.skillFiles(ctx, namespace, source)
				return slices.Sorted(maps.Keys(files)), false, err
			},
			File: func(ctx context.Context, path string) ([]byte, error) {
				files, err := r.skillFiles(ctx, namespace, source)
				content, ok := files[path]
				switch {
				case err != nil:
					return nil, err
				case !ok:
					return nil, skill.ErrNoFile
				case len(content) > skill.MaxFileBytes:
					return nil, skill.ErrTooLarge
				}
				return content, nil
			},
		})
	}
	return all, nil
}

// SkillsOf are the existing skills of the chat: a call of the model for one does not fail because of another. The error
// is that of ctx.
func (r *Reader) SkillsOf(ctx context.Context, chat *v1beta1.Chat) ([]skill.Skill, error) {
	from := slices.Clone(chat.Spec.SkillsFrom)
	for i := range from {
		from[i].Optional = true
	}
	return r.Skills(ctx, chat.Namespace, from)
}

// skillFiles are the files of a skill by their paths, including SKILL.md. The error is a *MissingError, or that of ctx.
func (r *Reader) skillFiles(ctx context.Context, namespace string, from *v1beta1.SkillSource) (map[string][]byte,
	error) {
	name := from.ConfigMapRef.Name
	config, why := r.configMaps(namespace).get(ctx, name)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case why != "":
		return nil, &MissingError{Field: "skillsFrom", ConfigMap: name, Why: why}
	}
	files, missing := filesOf(config, from)
	if missing != "" {
		return nil, &MissingError{Field: "skillsFrom", ConfigMap: name, Key: missing,
			Why: fmt.Sprintf("it has no key %q", missing)}
	}
	return files, nil
}

// filesOf are the files of a ConfigMap that is a skill; missing is a required key that it lacks. Paths outside of the
// skill are ignored.
func filesOf(config *apiclient.ConfigMap, from *v1beta1.SkillSource) (files map[string][]byte, missing string) {
	files = map[string][]byte{}
	for _, item := range itemsOf(config, from) {
		path, err := skill.CheckPath(item.Path)
		value, ok := config.Value(item.Key)
		switch {
		case err != nil || path != item.Path:
		case ok:
			files[path] = value
		case !from.Optional || path == skill.MainFile:
			return nil, item.Key
		}
	}
	return files, ""
}

// itemsOf are the items of a skill, including SKILL.md.
func itemsOf(config *apiclient.ConfigMap, from *v1beta1.SkillSource) []v1beta1.SkillItem {
	items := slices.Clone(from.Items)
	if len(items) == 0 {
		for _, key := range slices.AppendSeq(slices.Collect(maps.Keys(config.Data)), maps.Keys(config.BinaryData)) {
			items = append(items, v1beta1.SkillItem{Key: key, Path: key})
		}
	}
	if !slices.ContainsFunc(items, func(i v1beta1.SkillItem) bool { return i.Path == skill.MainFile }) {
		items = append(items, v1beta1.SkillItem{Key: skill.MainFile, Path: skill.MainFile})
	}
	return items
}
