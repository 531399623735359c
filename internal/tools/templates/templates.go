// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package templates holds the tools by which a model chooses what its workspace is made from: it lists the templates
// that its chat lets it choose among, reads one, and decides for one. The operator makes the workspace, once it has the
// decision and a call needs it.
package templates

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
)

const (
	// maxTemplates is how many templates are looked at, and maxBytes how much of them, as the API server has them, is read
	// for a call: as many chats as a pod has may call at the same moment.
	maxTemplates, maxBytes = 200, 4 << 20
	// maxName is how many characters the name of an object may have.
	maxName = 253
	// maxDescription is how many characters of a description are shown.
	maxDescription = 2 << 10
	// offered is to which chats the tools are offered.
	offered = "chats whose `spec.workspace.podTemplateSelector` lets the model choose"
)

// Template is what a model may know of a PodTemplate.
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
	// List lists at most so many templates that a label selector selects, in as many bytes at most as the API server has
	// them in, and says whether there are more.
	List func(ctx context.Context, selector string, most int, mostBytes int64) (all []Template, more bool, err error)
}

// Tools are all of them.
func Tools(o Options) []tools.Tool {
	own := &common{o}
	return []tools.Tool{list{own}, read{own}, create{own}}
}

// common is what the tools share.
type common struct{ options Options }

// suits reports whether the model of the chat is to choose.
func suits(chat *v1alpha1.Chat) bool {
	w := chat.Spec.Workspace
	return w != nil && w.PodTemplateRef == nil && w.PodTemplateSelector != nil
}

// choice are the templates that the model of the chat may choose, by name.
func (c *common) choice(ctx context.Context, chat *v1alpha1.Chat) (all []Template, more bool, err error) {
	if !suits(chat) {
		return nil, false, errors.New("the model of this chat is not to choose: its spec.workspace has no " +
			"podTemplateSelector")
	}
	want := labels.SelectorFromSet(chat.Spec.Workspace.PodTemplateSelector.Labels())
	all, more, err = c.options.List(ctx, want.String(), maxTemplates, maxBytes)
	if err != nil && ctx.Err() != nil {
		return nil, false, ctx.Err()
	}
	if err != nil {
		return nil, false, fmt.Errorf("the templates cannot be listed: %w", err)
	}
	slices.SortFunc(all, func(a, b Template) int { return strings.Compare(a.Name, b.Name) })
	return all, more, nil
}

// one is the template of that name. The error tells the model which there are.
func (c *common) one(ctx context.Context, chat *v1alpha1.Chat, name string) (*Template, error) {
	all, more, err := c.choice(ctx, chat)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(t Template) bool { return t.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no template %q; the templates are: %s", name, names(all, more))
	}
	return &all[i], nil
}

// maxNamed is how many templates an error names.
const maxNamed = 50

// names of templates, for the model. Of those that are more than can be read it learns only that there are some.
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
	if len(named) == 0 {
		return "none"
	}
	return strings.Join(named, ", ")
}

// tooMany is what the model reads where there are more templates than can be read.
var tooMany = fmt.Sprintf("more, of which some cannot be chosen, as %d templates and %d MiB of them are read at most: "+
	"a person has to have spec.workspace.podTemplateSelector of the chat select fewer", maxTemplates, maxBytes>>20)

// description of the template, for the model.
func description(t *Template) string {
	return clip.Ellipsis(printable.Text(t.Annotations[v1alpha1.AnnotationDescription]), maxDescription)
}
