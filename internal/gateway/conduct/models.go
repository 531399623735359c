// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conduct

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/gateway/turn"
)

// ModelNotFound is the reason of a refusal because the namespace has no such model.
const ModelNotFound = "ModelNotFound"

// Model is what may answer chats of a namespace.
type Model struct {
	// ID is the name of a ChatModelConfig, or class/ and that of a ChatClass.
	ID string
	// Owner is who serves it.
	Owner string
	// Created is when it was created.
	Created time.Time
}

// Models are those of a namespace, the default first, without such as are disabled.
func (c *Conductor) Models(ctx context.Context, namespace string) ([]Model, error) {
	configs, err := c.options.Client.ModelConfigs(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the models: %w", err)
	}
	models := make([]Model, 0, len(configs.Items))
	for i := range configs.Items {
		m := &configs.Items[i]
		model := Model{ID: m.Name, Owner: string(m.Spec.Provider), Created: m.CreationTimestamp.Time}
		switch {
		case m.Spec.Disabled:
		case m.Spec.Default:
			models = slices.Insert(models, 0, model)
		default:
			models = append(models, model)
		}
	}
	classes, err := c.options.Client.Classes(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the classes: %w", err)
	}
	for i := range classes.Items {
		k := &classes.Items[i]
		models = append(models, Model{ID: turn.ClassPrefix + k.Name, Owner: "parley", Created: k.CreationTimestamp.Time})
	}
	return models, nil
}

// model is why the model of a request cannot answer.
func (c *Conductor) model(ctx context.Context, r *turn.Request) error {
	if r.Model == "" {
		return nil
	}
	if found, err := c.found(ctx, r); found || err != nil {
		return err
	}
	models, err := c.Models(ctx, r.Namespace)
	if err != nil {
		return err
	}
	return noModel(r.Model, models)
}

// found reports whether the namespace has the model of a request.
func (c *Conductor) found(ctx context.Context, r *turn.Request) (bool, error) {
	var err error
	disabled := false
	class, isClass := strings.CutPrefix(r.Model, turn.ClassPrefix)
	switch {
	case isClass && turn.IsMessageName(class):
		_, err = c.options.Client.Classes(r.Namespace).Get(ctx, class)
	case turn.IsMessageName(r.Model):
		config, failed := c.options.Client.ModelConfigs(r.Namespace).Get(ctx, r.Model)
		disabled, err = config.Spec.Disabled, failed
	default:
		return false, nil
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return !disabled, wrapped("reading the model", err)
}

// noModel says which models there are.
func noModel(name string, models []Model) error {
	const most, longest = 20, 100
	names := make([]string, 0, len(models))
	for _, m := range models[:min(most, len(models))] {
		names = append(names, m.ID)
	}
	there := "none"
	if len(names) > 0 {
		there = strings.Join(names, ", ")
	}
	return &refusal.Error{Status: http.StatusNotFound, Reason: ModelNotFound,
		Message: fmt.Sprintf("the namespace has no model %.*q: there is %s", longest, name, there)}
}

func wrapped(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
