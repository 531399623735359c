// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"
)

// ModelConfig is what a list shows of a ChatModelConfig.
type ModelConfig struct {
	Name string `json:"name"`
	// Provider serves the model, and Model is what it calls it.
	Provider string `json:"provider"`
	Model    string `json:"model"`
	// Default is true for the one that answers chats which name none.
	Default bool `json:"default"`
	// Disabled is true for one that answers nobody.
	Disabled bool `json:"disabled"`
	// Ready is whether it can answer.
	Ready bool `json:"ready"`
}

// ChatClass is what a list shows of a ChatClass.
type ChatClass struct {
	Name string `json:"name"`
	// Description is what its chats are for.
	Description string `json:"description"`
	// Default is true for the one that chats have which name none.
	Default bool `json:"default"`
	// Ready is whether it is in force.
	Ready bool `json:"ready"`
}

// ModelConfigs lists what may answer chats, by name.
func (n Namespace) ModelConfigs(ctx context.Context) ([]ModelConfig, error) {
	list, err := call[struct {
		ModelConfigs []ModelConfig `json:"modelConfigs"`
	}](ctx, n, http.MethodGet, nil, nil, "modelconfigs")
	if err != nil {
		return nil, err
	}
	return list.ModelConfigs, nil
}

// ChatClasses lists the classes that chats may have, by name.
func (n Namespace) ChatClasses(ctx context.Context) ([]ChatClass, error) {
	list, err := call[struct {
		ChatClasses []ChatClass `json:"chatClasses"`
	}](ctx, n, http.MethodGet, nil, nil, "chatclasses")
	if err != nil {
		return nil, err
	}
	return list.ChatClasses, nil
}
