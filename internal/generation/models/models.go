// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package models finds the models that a pod's chats are answered by, and makes their clients.
//
// Invariants: a Target can be called as it is: its ChatModelConfig exists and is enabled, and its API key, its CA
// bundle and the credentials of its proxy could be read. Calls of one ChatModelConfig share connections for as long as
// neither it nor one of these changes.
package models

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"charm.land/fantasy"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/identity"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/netguard/retry"
)

// Options of Models. All are required.
type Options struct {
	// Namespace of the ChatModelConfigs.
	Namespace string
	// Client reaches the API server.
	Client *apiclient.Client
	// Configs are the ChatModelConfigs of the namespace, as far as they have been seen.
	Configs cache.Store
	// Keys reads an API key; fs.ErrNotExist if there is none.
	Keys func(secret, key string) ([]byte, error)
	// HTTP makes the client that calls a provider by a route: those of a zero route share their connections.
	HTTP func(httpguard.Route) *http.Client
	// Identity is the workload identity of the pod.
	Identity *identity.Identity
	// Now returns the current time.
	Now func() time.Time
}

// Models makes models and caches them, so that calls share connections. It is safe for concurrent use.
type Models struct {
	options Options
	mu      sync.Mutex
	cached  map[string]cachedModel // by the name of the ChatModelConfig
	// retryAfter are the waits that providers asked for, by the name of the ChatModelConfig.
	retryAfter map[string]retryAfter
	// waiting names the ChatModelConfigs of which a call waits for such a time.
	waiting map[string]bool
}

// cachedModel is a model and what it was made from, the key and the route included.
type cachedModel struct {
	from  [sha256.Size]byte
	model fantasy.LanguageModel
}

// New returns models of which none is cached yet.
func New(o Options) *Models {
	return &Models{options: o, cached: map[string]cachedModel{}, retryAfter: map[string]retryAfter{},
		waiting: map[string]bool{}}
}

// Target is a model that is ready to be called.
type Target struct {
	Config *v1alpha1.ChatModelConfig
	Key    string
	Model  fantasy.LanguageModel
	models *Models
}

// Subject is what errors of its calls are about.
func (t *Target) Subject() fault.Subject {
	return fault.Subject{Config: t.Config.Name, Spec: &t.Config.Spec, Key: t.Key}
}

// Identity names the model in messages.
func (t *Target) Identity() *v1alpha1.ModelIdentity {
	spec := &t.Config.Spec
	return &v1alpha1.ModelIdentity{Config: t.Config.Name, Provider: string(spec.Provider), Name: spec.Model}
}

// Target is the model of the ChatModelConfig of that name. The error tells people why it cannot be called.
func (m *Models) Target(ctx context.Context, name string) (*Target, *v1alpha1.GenerationError) {
	config, err := m.config(ctx, name)
	if err != nil {
		return nil, &v1alpha1.GenerationError{
			Reason:  v1alpha1.ErrorModelConfigNotFound,
			Message: fmt.Sprintf("ChatModelConfig %s does not exist", name),
			Advice:  "Create it again, or name another one in the chat",
			// The chat waits for it before the next attempt.
			Retryable: true,
		}
	}
	if config.Spec.Disabled {
		return nil, &v1alpha1.GenerationError{
			Reason: v1alpha1.ErrorModelConfigDisabled, Message: fmt.Sprintf("ChatModelConfig %s is disabled", name),
			Advice: "Name another one in the chat, or take spec.disabled out of it, then send a message to continue",
		}
	}
	t := &Target{Config: config, models: m}
	if t.Key, err = m.key(&config.Spec); err != nil {
		return nil, m.keyError(config, err)
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

// config finds a configuration. The cache can lag behind the chat's, so that one that is missing is looked up where the
// truth is, until there is an answer. An error means that it does not exist, or that ctx is done.
func (m *Models) config(ctx context.Context, name string) (*v1alpha1.ChatModelConfig, error) {
	if object, ok, err := m.options.Configs.GetByKey(m.options.Namespace + "/" + name); err == nil && ok {
		return object.(*v1alpha1.ChatModelConfig), nil
	}
	return retry.Do(ctx, retry.APIServer, func(ctx context.Context) (*v1alpha1.ChatModelConfig, error) {
		return m.options.Client.ModelConfigs(m.options.Namespace).Get(ctx, name)
	}, apierrors.IsNotFound)
}

func (m *Models) key(spec *v1alpha1.ChatModelConfigSpec) (string, error) {
	if spec.APIKey == nil {
		return "", nil
	}
	raw, err := m.options.Keys(spec.APIKey.SecretKeyRef.Name, spec.APIKey.SecretKeyRef.Key)
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(raw))
	if key == "" {
		return "", fs.ErrNotExist
	}
	return key, nil
}

// keyError says which key of which Secret is needed. A generation pod may not read Secrets, and a volume is empty
// whether the Secret is missing or its key: so both are named.
func (m *Models) keyError(config *v1alpha1.ChatModelConfig, err error) *v1alpha1.GenerationError {
	ref := config.Spec.APIKey.SecretKeyRef
	e := &v1alpha1.GenerationError{
		Reason: v1alpha1.ErrorAPIKeyMissing, Provider: string(config.Spec.Provider),
		Message: fmt.Sprintf("Secret %s does not exist in namespace %s, or has no key %q, or that is empty: "+
			"ChatModelConfig %s names it in apiKey.secretKeyRef", ref.Name, m.options.Namespace, ref.Key, config.Name),
		Advice: fmt.Sprintf("Create Secret %s in namespace %s with the key %q, then send a message to continue", ref.Name,
			m.options.Namespace, ref.Key),
	}
	if !errors.Is(err, fs.ErrNotExist) {
		e.Message = fmt.Sprintf("Key %q of Secret %s in namespace %s, which ChatModelConfig %s names, cannot be read in the "+
			"generation pod", ref.Key, ref.Name, m.options.Namespace, config.Name)
		e.Advice = "See the pod's volumes, then send a message to try again"
	}
	return e
}

// model is the model that was made from the configuration, the key and the route, or a new one.
func (m *Models) model(config *v1alpha1.ChatModelConfig, key string, route httpguard.Route) (fantasy.LanguageModel,
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
