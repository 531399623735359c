// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"net/http"
	"time"

	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/conduct"
)

// openaiModel is a model as OpenAI lists it.
type openaiModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// anthropicModel is a model as Anthropic lists it.
type anthropicModel struct {
	ID          string    `json:"id"`
	Type        string    `json:"type"`
	DisplayName string    `json:"display_name"`
	CreatedAt   time.Time `json:"created_at"`
}

// modelOf is a model in the form that the client reads.
func (c *call) modelOf(m conduct.Model) any {
	if c.anthropic() {
		return anthropicModel{ID: m.ID, Type: "model", DisplayName: m.ID, CreatedAt: m.Created}
	}
	return openaiModel{ID: m.ID, Object: "model", Created: m.Created.Unix(), OwnedBy: m.Owner}
}

func (s *server) models(c *call) error {
	models, err := s.options.Conductor.Models(c.ctx(), c.namespace)
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
			list["first_id"], list["last_id"] = models[0].ID, models[n-1].ID
		}
	}
	return c.json(list)
}

func (s *server) model(c *call) error {
	models, err := s.options.Conductor.Models(c.ctx(), c.namespace)
	if err != nil {
		return err
	}
	for _, m := range models {
		if m.ID == c.r.PathValue("model") {
			return c.json(c.modelOf(m))
		}
	}
	return &wire.Error{Status: http.StatusNotFound, Type: wire.NotFound, Code: new("model_not_found"),
		Message: "the namespace has no such model"}
}
