// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"cloud.google.com/go/auth/credentials"
	"cloud.google.com/go/compute/metadata"

	"parley.dev/parley/internal/generation/provider/fault"
)

// googleFile is the variable with the path of a credential configuration.
const googleFile = "GOOGLE_APPLICATION_CREDENTIALS"

// google exchanges a token of the pod by the credential configuration that the environment names, or else asks the
// metadata server. The files are read each time: they rotate.
func (i *Identity) google(ctx context.Context) (string, time.Time, error) {
	file := os.Getenv(googleFile)
	if file == "" {
		return i.googleMetadata(ctx)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", time.Time{}, &fault.LoginError{Problem: fmt.Sprintf(
			"the file that $%s names cannot be read in the generation pod", googleFile)}
	}
	asking := &exchange{}
	// Its logger would write tokens if the environment asks for it.
	configured, err := credentials.NewCredentialsFromJSON(credentials.ExternalAccount, raw, &credentials.DetectOptions{
		Scopes: []string{googleScope}, Client: asking.over(i.client), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return "", time.Time{}, &fault.LoginError{Problem: fmt.Sprintf(
			"the file that $%s names is no credential configuration of type external_account", googleFile)}
	}
	token, err := configured.Token(ctx)
	if err != nil {
		return "", time.Time{}, asking.failure(nameOf(raw))
	}
	return token.Value, token.Expiry, nil
}

// nameOf is whom a credential configuration makes of the pod: a service account, or a principal of a provider.
func nameOf(raw []byte) string {
	var configuration struct {
		Audience       string `json:"audience"`
		Impersonations string `json:"service_account_impersonation_url"`
	}
	_ = json.Unmarshal(raw, &configuration) // It has been read before.
	if account := path.Base(configuration.Impersonations); configuration.Impersonations != "" {
		return "service account " + strings.TrimSuffix(account, ":generateAccessToken")
	}
	return "the pod's principal at " + strings.TrimPrefix(configuration.Audience, "//")
}

// newMetadataTransport returns a transport that reaches link-local addresses, and no proxy.
func newMetadataTransport() http.RoundTripper {
	dialer := &net.Dialer{Timeout: 2 * time.Second}
	return &http.Transport{DialContext: dialer.DialContext, IdleConnTimeout: time.Minute}
}

// googleMetadata asks the metadata server, which on GKE knows the pod by its address.
func (i *Identity) googleMetadata(ctx context.Context) (string, time.Time, error) {
	asking := &exchange{}
	client := metadata.NewWithOptions(&metadata.Options{
		Client: asking.over(&http.Client{Transport: i.metadata, Timeout: 5 * time.Second}),
	})
	answer, err := client.GetWithContext(ctx,
		"instance/service-accounts/default/token?"+url.Values{"scopes": {googleScope}}.Encode())
	var token struct {
		Value   string `json:"access_token"`
		Seconds int64  `json:"expires_in"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(answer), &token)
	}
	if err != nil || token.Value == "" {
		return "", time.Time{}, asking.failure("the pod's service account by GKE's metadata server")
	}
	return token.Value, asking.at.Add(time.Duration(token.Seconds) * time.Second), nil
}
