// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package models finds the models of ChatModelConfigs, and makes their clients.
//
// Invariants: a Target can be called: its ChatModelConfig exists and is enabled, and its API key, CA bundle and proxy
// credentials have been read. Calls of one ChatModelConfig share connections until it or one of these changes.
package models

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"charm.land/fantasy"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/identity"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/netguard/retry"
)

// Options of Models. All are required.
type Options struct {
	Namespace string
	Client    *apiclient.Client
	// Configs caches the ChatModelConfigs of the namespace.
	Configs cache.Store
	// Keys reads a key of a Secret; fs.ErrNotExist if there is none.
	Keys func(secret, key string) ([]byte, error)
	// HTTP returns the client for a route. Clients of a zero route share their connections.
	HTTP     func(httpguard.Route) *http.Client
	Identity *identity.Identity
	Now      func() time.Time
}

// Models makes and caches models. It is safe for concurrent use.
type Models struct {
	options Options
	mu      sync.Mutex
	cached  map[string]cachedModel // by the name of the ChatModelConfig
	// retryAfter are the times that providers asked for, and waiting marks the ChatModelConfigs of which a call waits for
	// that, by the name of the ChatModelConfig.
	retryAfter map[string]retryAfter
	waiting    map[string]bool
}

// cachedModel is a model, and the hash of its configuration, key and route.
type cachedModel struct {
	from  [sha256.Size]byte
	model fantasy.LanguageModel
}

// New returns models with an empty cache.
func New(o Options) *Models {
	return &Models{options: o, cached: map[string]cachedModel{}, retryAfter: map[string]retryAfter{},
		waiting: map[string]bool{}}
}

// Target is a model that can be called.
type Target struct {
	Config *v1beta1.ChatModelConfig
	Key    string
	Model  fantasy.LanguageModel
	models *Models
}

// Subject is the subject of errors of its calls.
func (t *Target) Subject() fault.Subject {
	return fault.Subject{Config: t.Config.Name, Spec: &t.Config.Spec, Key: t.Key}
}

// Identity names the model in messages.
func (t *Target) Identity() *v1beta1.ModelIdentity {
	spec := &t.Config.Spec
	return &v1beta1.ModelIdentity{Config: t.Config.Name, Provider: string(spec.Provider), Name: spec.Model}
}

// Target is the model of the ChatModelConfig. The error explains why it cannot be called.
func (m *Models) Target(ctx context.Context, name string) (*Target, *v1beta1.GenerationError) {
	config, err := m.config(ctx, name)
	if err != nil {
		return nil, &v1beta1.GenerationError{
			Reason:  v1beta1.ErrorModelConfigNotFound,
			Message: fmt.Sprintf("ChatModelConfig %s does not exist", name),
			Advice:  "Create it again, or name another one in the chat",
			// The chat waits for it before the next attempt.
			Retryable: true,
		}
	}
	if config.Spec.Disabled {
		return nil, &v1beta1.GenerationError{
			Reason: v1beta1.ErrorModelConfigDisabled, Message: fmt.Sprintf("ChatModelConfig %s is disabled", name),
			Advice: "Name another one in the chat, or take spec.disabled out of it, then send a message to continue",
		}
	}
	t := &Target{Config: config, models: m}
	if config.Spec.APIKey != nil {
		ref := config.Spec.APIKey.SecretKeyRef
		if t.Key, err = m.secret(ref, strings.TrimSpace); err != nil {
			failure := m.secretError(config, "apiKey.secretKeyRef", ref, err)
			failure.Reason = v1beta1.ErrorAPIKeyMissing
			return nil, failure
		}
	}
	route, failed := m.route(ctx, config)
	if failed != nil {
		return nil, failed
	}
	if t.Model, err = m.model(config, t.Key, route); err != nil {
		return nil, m.invalid(config, "provider, model, region and baseURL do not make a client together", "Correct them")
	}
	return t, nil
}

// config finds a configuration. The cache can lag behind that of chats: a missing one is read from the API server. An
// error means that it does not exist, or that ctx is done.
func (m *Models) config(ctx context.Context, name string) (*v1beta1.ChatModelConfig, error) {
	if config := m.cachedConfig(name); config != nil {
		return config, nil
	}
	return retry.Do(ctx, retry.APIServer, func(ctx context.Context) (*v1beta1.ChatModelConfig, error) {
		return m.options.Client.ModelConfigs(m.options.Namespace).Get(ctx, name)
	}, apierrors.IsNotFound)
}

func (m *Models) cachedConfig(name string) *v1beta1.ChatModelConfig {
	object, _, _ := m.options.Configs.GetByKey(m.options.Namespace + "/" + name)
	config, _ := object.(*v1beta1.ChatModelConfig)
	return config
}

// secret reads a key of a Secret, and trims it. An empty one does not exist.
func (m *Models) secret(ref v1beta1.SecretKeyReference, trim func(string) string) (string, error) {
	raw, err := m.options.Keys(ref.Name, ref.Key)
	value := trim(string(raw))
	if err == nil && value == "" {
		err = fs.ErrNotExist
	}
	return value, err
}

// model is the cached model of the configuration, the key and the route, or a new one.
func (m *Models) model(config *v1beta1.ChatModelConfig, key string, route httpguard.Route) (fantasy.LanguageModel,
	error) {
	from := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%q/%q/%q", config.UID, config.Generation, key, route.Proxy,
		route.CABundle))
	m.mu.Lock()
	defer m.mu.Unlock()
	if cached, ok := m.cached[config.Name]; ok && cached.from == from {
		return cached.model, nil
	}
	var model fantasy.LanguageModel
	var err error
	if config.Spec.Auth != nil {
		model, err = provider.NewAs(m.options.Identity, &config.Spec, m.options.HTTP(route))
	} else {
		model, err = provider.New(&config.Spec, key, m.options.HTTP(route))
	}
	if err != nil {
		return nil, err
	}
	m.cached[config.Name] = cachedModel{from: from, model: model}
	return model, nil
}
