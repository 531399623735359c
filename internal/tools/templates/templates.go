// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package templates has the tools with which a model chooses the template of its workspace: it lists the templates that
// its chat selects, reads one, and chooses one. The operator creates the workspace when a call needs it.
package templates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/parameters"
)

const (
	// maxTemplates and maxBytes bound what a call reads from the API server: all chats of a pod may call at the same time.
	maxTemplates, maxBytes = 200, 4 << 20
	// maxNamed is how many templates an error names.
	maxNamed = 50
	// maxName and maxDescription are characters.
	maxName, maxDescription = 253, 2 << 10

	offered = "chats whose `spec.workspace.podTemplateSelector` lets the model choose"
)

// Template is the part of a PodTemplate that a model may read.
type Template struct {
	// Name of the PodTemplate.
	Name string
	// Annotations describe it, and declare its parameters.
	Annotations map[string]string
	// Image that commands run in, and what its container requests and may use.
	Image            string
	Requests, Limits map[string]string
}

// Options of the tools. All are required.
type Options struct {
	// List lists the templates that a label selector selects, up to the limits, and reports whether there are more.
	List func(ctx context.Context, selector string, most int, mostBytes int64) (all []Template, more bool, err error)
}

// Tools returns all tools of the package.
func Tools(o Options) []tools.Tool {
	return []tools.Tool{o.listTemplates(), o.readTemplate(), o.createWorkspace()}
}

// reading are the traits of the tools that only read.
var reading = tools.Traits{Plan: tools.Free, Explore: tools.Free, UsefulTo: mayChoose, Repeatable: true}

// mayChoose reports whether the model of the chat may choose a template.
func mayChoose(chat *v1beta1.Chat) bool {
	w := chat.Spec.Workspace
	return w != nil && w.PodTemplateRef == nil && w.PodTemplateSelector != nil
}

// selectedBy are the templates that the model of the chat may choose, by name.
func (o Options) selectedBy(ctx context.Context, chat *v1beta1.Chat) (all []Template, more bool, err error) {
	if !mayChoose(chat) {
		return nil, false, errors.New("the model of this chat is not to choose: its spec.workspace has no " +
			"podTemplateSelector")
	}
	selector := labels.SelectorFromSet(chat.Spec.Workspace.PodTemplateSelector.Labels())
	all, more, err = o.List(ctx, selector.String(), maxTemplates, maxBytes)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, false, ctx.Err()
	case err != nil:
		return nil, false, fmt.Errorf("the templates cannot be listed: %w", err)
	}
	slices.SortFunc(all, func(a, b Template) int { return strings.Compare(a.Name, b.Name) })
	return all, more, nil
}

// find is the template of that name, with its parameters. The error is for the model.
func (o Options) find(ctx context.Context, chat *v1beta1.Chat, name string) (
	*Template, []parameters.Parameter, error,
) {
	all, more, err := o.selectedBy(ctx, chat)
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(all, func(t Template) bool { return t.Name == name })
	if i < 0 {
		return nil, nil, fmt.Errorf("there is no template %q; the templates are: %s", name, names(all, more))
	}
	declared, err := parameters.Of(all[i].Annotations)
	if err != nil {
		return nil, nil, fmt.Errorf("template %s is invalid: a person must fix it, or choose another one: %w", name, err)
	}
	return &all[i], declared, nil
}

// names of templates, for the model. It does not learn the names of templates beyond the limits.
func names(all []Template, more bool) string {
	var named []string
	for i := range all[:min(len(all), maxNamed)] {
		named = append(named, all[i].Name)
	}
	if len(all) > maxNamed {
		named = append(named, "and more, see list_templates")
	}
	if more {
		named = append(named, "and "+tooMany)
	}
	return cmp.Or(strings.Join(named, ", "), "none")
}

// tooMany is what the model reads if there are more templates than the limits allow.
var tooMany = fmt.Sprintf("more, of which some cannot be chosen, as %d templates and %d MiB of them are read at most: "+
	"a person has to have spec.workspace.podTemplateSelector of the chat select fewer", maxTemplates, maxBytes>>20)

// description of the template, for the model.
func (t *Template) description() string {
	return clip.Ellipsis(printable.Text(t.Annotations[v1beta1.AnnotationDescription]), maxDescription)
}
