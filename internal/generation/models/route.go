// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/modelconfig"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/netguard/retry"
)

// bundleTimeout limits the reading of a ConfigMap with a CA bundle.
const bundleTimeout = time.Minute

// route is the proxy and the CA bundle of the configuration.
func (m *Models) route(ctx context.Context, config *v1beta1.ChatModelConfig) (
	route httpguard.Route, failed *v1beta1.GenerationError,
) {
	if p := config.Spec.Proxy; p != nil {
		route.NoProxy = p.NoProxy
		if route.Proxy, failed = m.proxy(config); failed != nil {
			return route, failed
		}
	}
	route.CABundle, failed = m.caBundle(ctx, config)
	return route, failed
}

// proxy is the URL of the configuration's proxy, with its credentials; empty if it has none.
func (m *Models) proxy(config *v1beta1.ChatModelConfig) (string, *v1beta1.GenerationError) {
	spec := config.Spec.Proxy
	if spec.URL == "" {
		return "", nil
	}
	proxy, err := url.Parse(spec.URL)
	if err != nil || proxy.Host == "" {
		return "", m.invalid(config, "proxy.url is no URL of a proxy", "Correct it")
	}
	var values [2]string
	for i, key := range spec.Credentials() {
		if values[i], err = m.secret(key, func(s string) string { return strings.TrimRight(s, "\r\n") }); err != nil {
			return "", m.secretError(config, "proxy.secretRef", key, err)
		}
	}
	if spec.SecretRef != nil {
		proxy.User = url.UserPassword(values[0], values[1])
	}
	return proxy.String(), nil
}

// caBundle has the certificates of the configuration; nil if it has none.
func (m *Models) caBundle(ctx context.Context, config *v1beta1.ChatModelConfig) ([]byte, *v1beta1.GenerationError) {
	from := config.Spec.CABundleFrom
	if from == nil {
		return nil, nil
	}
	var bundle []byte
	var holder string
	var failed *v1beta1.GenerationError
	switch {
	case from.SecretKeyRef != nil:
		ref := *from.SecretKeyRef
		holder = fmt.Sprintf("key %q of Secret %s", ref.Key, ref.Name)
		var err error
		if bundle, err = m.options.Keys(ref.Name, ref.Key); err != nil {
			return nil, m.secretError(config, "caBundleFrom.secretKeyRef", ref, err)
		}
	case from.ConfigMapKeyRef != nil:
		holder = fmt.Sprintf("key %q of ConfigMap %s", from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Name)
		if bundle, failed = m.configMapKey(ctx, config, holder); failed != nil {
			return nil, failed
		}
	}
	if !modelconfig.HoldsCertificates(bundle) {
		return nil, m.invalid(config, holder+", which caBundleFrom names, holds no certificate in PEM",
			"Put the certificates of the authority there")
	}
	return bundle, nil
}

// configMapKey reads the key of the ConfigMap in caBundleFrom. It retries errors of the API server.
func (m *Models) configMapKey(parent context.Context, config *v1beta1.ChatModelConfig, holder string) (
	[]byte, *v1beta1.GenerationError,
) {
	ctx, cancel := context.WithTimeout(parent, bundleTimeout)
	defer cancel()
	ref := config.Spec.CABundleFrom.ConfigMapKeyRef
	object, err := retry.Do(ctx, retry.APIServer, func(ctx context.Context) (*apiclient.ConfigMap, error) {
		return m.options.Client.ConfigMap(ctx, m.options.Namespace, ref.Name)
	}, apierrors.IsNotFound)
	if ctx.Err() != nil {
		e := m.invalid(config, holder+", which caBundleFrom names, could not be read in a minute",
			"See whether the Role parley-generation lets generation pods get ConfigMaps")
		e.Retryable = true
		return nil, e
	}
	if err == nil {
		if bundle, ok := object.Value(ref.Key); ok {
			return bundle, nil
		}
	}
	return nil, m.invalid(config, fmt.Sprintf("%s, which caBundleFrom names, does not exist in namespace %s", holder,
		m.options.Namespace), "Create it")
}

// secretError explains which key of which Secret is missing. Secrets are mounted: a missing Secret and a missing key
// look the same.
func (m *Models) secretError(
	config *v1beta1.ChatModelConfig, field string, ref v1beta1.SecretKeyReference, err error,
) *v1beta1.GenerationError {
	if !errors.Is(err, fs.ErrNotExist) {
		return m.invalid(config, fmt.Sprintf("key %q of Secret %s, which %s names, cannot be read in the generation pod",
			ref.Key, ref.Name, field), "See the pod's volumes")
	}
	return m.invalid(config, fmt.Sprintf("Secret %s does not exist in namespace %s, or has no key %q, or that is empty: "+
		"%s names it", ref.Name, m.options.Namespace, ref.Key, field),
		fmt.Sprintf("Create Secret %s in namespace %s with the key %q", ref.Name, m.options.Namespace, ref.Key))
}

// invalid is the error of an unusable configuration.
func (m *Models) invalid(config *v1beta1.ChatModelConfig, why, advice string) *v1beta1.GenerationError {
	return &v1beta1.GenerationError{
		Reason: v1beta1.ErrorModelConfigInvalid, Provider: string(config.Spec.Provider),
		Message: fmt.Sprintf("ChatModelConfig %s cannot be used: %s", config.Name, why),
		Advice:  advice + ", then send a message to continue",
	}
}
