// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/gateway/turn"
)

// openaiModel is a model in OpenAI's list.
type openaiModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// anthropicModel is a model in Anthropic's list.
type anthropicModel struct {
	ID          string    `json:"id"`
	Type        string    `json:"type"`
	DisplayName string    `json:"display_name"`
	CreatedAt   time.Time `json:"created_at"`
}

// modelOf is a model in the form of the client's protocol.
func (c *call) modelOf(m model) any {
	if c.anthropic() {
		return anthropicModel{ID: m.id, Type: "model", DisplayName: m.id, CreatedAt: m.created}
	}
	return openaiModel{ID: m.id, Object: "model", Created: m.created.Unix(), OwnedBy: m.owner}
}

func (s *server) models(c *call) error {
	models, err := s.backend.models(c.ctx(), c.namespace)
	if err != nil {
		return err
	}
	data := make([]any, 0, len(models))
	for _, m := range models {
		data = append(data, c.modelOf(m))
	}
	list := map[string]any{"object": "list", "data": data}
	if c.anthropic() {
		list = map[string]any{"data": data, "has_more": false, "first_id": nil, "last_id": nil}
		if n := len(models); n > 0 {
			list["first_id"], list["last_id"] = models[0].id, models[n-1].id
		}
	}
	return c.json(list)
}

func (s *server) model(c *call) error {
	models, err := s.backend.models(c.ctx(), c.namespace)
	if err != nil {
		return err
	}
	for _, m := range models {
		if m.id == c.r.PathValue("model") {
			return c.json(c.modelOf(m))
		}
	}
	return &wire.Error{Status: http.StatusNotFound, Type: wire.NotFound, Code: new("model_not_found"),
		Message: "the namespace has no such model"}
}

// modelNotFound is the reason of a refusal because the namespace has no such model.
const modelNotFound = "ModelNotFound"

// model can answer chats of a namespace.
type model struct {
	// id is the name of a ChatModelConfig, or class/ and that of a ChatClass.
	id string
	// owner is the provider.
	owner   string
	created time.Time
}

// models lists the enabled models of a namespace, the default first.
func (b *backend) models(ctx context.Context, namespace string) ([]model, error) {
	configs, err := b.Client.ModelConfigs(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the models: %w", err)
	}
	models := make([]model, 0, len(configs.Items))
	for i := range configs.Items {
		m := &configs.Items[i]
		enabled := model{m.Name, string(m.Spec.Provider), m.CreationTimestamp.Time}
		switch {
		case m.Spec.Disabled:
		case m.Spec.Default:
			models = slices.Insert(models, 0, enabled)
		default:
			models = append(models, enabled)
		}
	}
	classes, err := b.Client.Classes(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the classes: %w", err)
	}
	for i := range classes.Items {
		k := &classes.Items[i]
		models = append(models, model{turn.ClassPrefix + k.Name, "parley", k.CreationTimestamp.Time})
	}
	return models, nil
}

// checkModel returns why the model of a request cannot answer.
func (b *backend) checkModel(ctx context.Context, r *turn.Request) error {
	if r.Model == "" {
		return nil
	}
	if found, err := b.hasModel(ctx, r); found || err != nil {
		return err
	}
	models, err := b.models(ctx, r.Namespace)
	if err != nil {
		return err
	}
	return noModel(r.Model, models)
}

// hasModel reports whether the namespace has the enabled model of a request.
func (b *backend) hasModel(ctx context.Context, r *turn.Request) (bool, error) {
	var err error
	disabled := false
	class, isClass := strings.CutPrefix(r.Model, turn.ClassPrefix)
	switch {
	case isClass && turn.IsMessageName(class):
		_, err = b.Client.Classes(r.Namespace).Get(ctx, class)
	case turn.IsMessageName(r.Model):
		config, failed := b.Client.ModelConfigs(r.Namespace).Get(ctx, r.Model)
		disabled, err = config.Spec.Disabled, failed
	default:
		return false, nil
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return !disabled, wrapped("reading the model", err)
}

// noModel is a refusal that lists the existing models.
func noModel(name string, models []model) error {
	const most, longest = 20, 100
	names := make([]string, 0, len(models))
	for _, m := range models[:min(most, len(models))] {
		names = append(names, m.id)
	}
	there := "none"
	if len(names) > 0 {
		there = strings.Join(names, ", ")
	}
	return &refusal.Error{Status: http.StatusNotFound, Reason: modelNotFound,
		Message: fmt.Sprintf("the namespace has no model %.*q: there is %s", longest, name, there)}
}
