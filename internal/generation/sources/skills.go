// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/text/skill"
)

// Skills are those of the ConfigMaps, in their order, without missing optional ones. They have names and descriptions;
// their files are read on request. The error is a *MissingError, or that of ctx.
func (r *Reader) Skills(ctx context.Context, namespace string, from []v1alpha1.SkillSource) ([]skill.Skill, error) {
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
func (r *Reader) SkillsOf(ctx context.Context, chat *v1alpha1.Chat) ([]skill.Skill, error) {
	from := slices.Clone(chat.Spec.SkillsFrom)
	for i := range from {
		from[i].Optional = true
	}
	return r.Skills(ctx, chat.Namespace, from)
}

// skillFiles are the files of a skill by their paths, including SKILL.md. The error is a *MissingError, or that of ctx.
func (r *Reader) skillFiles(ctx context.Context, namespace string, from *v1alpha1.SkillSource) (map[string][]byte,
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
func filesOf(config *apiclient.ConfigMap, from *v1alpha1.SkillSource) (files map[string][]byte, missing string) {
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
func itemsOf(config *apiclient.ConfigMap, from *v1alpha1.SkillSource) []v1alpha1.SkillItem {
	items := slices.Clone(from.Items)
	if len(items) == 0 {
		for _, key := range slices.AppendSeq(slices.Collect(maps.Keys(config.Data)), maps.Keys(config.BinaryData)) {
			items = append(items, v1alpha1.SkillItem{Key: key, Path: key})
		}
	}
	if !slices.ContainsFunc(items, func(i v1alpha1.SkillItem) bool { return i.Path == skill.MainFile }) {
		items = append(items, v1alpha1.SkillItem{Key: skill.MainFile, Path: skill.MainFile})
	}
	return items
}
