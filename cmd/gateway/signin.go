// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"parley.dev/parley/internal/gateway/signin"
	"parley.dev/parley/internal/kube/apiclient"
)

// signInFlags are the flags about signing in to the page.
type signInFlags struct {
	issuer, client, secretFile, caFile, scopes, redirect, keyFile string
}

func (f *signInFlags) add(flags *flag.FlagSet) {
	flags.StringVar(&f.issuer, "oidc-issuer-url", "",
		"`URL` of the OpenID provider with which people sign in to the page; empty: they paste tokens")
	flags.StringVar(&f.client, "oidc-client-id", "", "the gateway's client at the OpenID provider; the API server must "+
		"accept ID tokens with this audience")
	flags.StringVar(&f.secretFile, "oidc-client-secret-file", "", "file with the client's secret; empty: a public client")
	flags.StringVar(&f.caFile, "oidc-ca-file", "",
		"PEM file with authorities that the OpenID provider may have, in addition to those of the system")
	flags.StringVar(&f.scopes, "oidc-scopes", "openid,profile,email",
		"scopes to ask the OpenID provider for, separated by commas; many providers need offline_access for refresh tokens")
	flags.StringVar(&f.redirect, "oidc-redirect-url", "",
		"`URL` of the page's callback as browsers reach it: https://HOST"+signin.CallbackPath)
	flags.StringVar(&f.keyFile, "session-key-file", "",
		"file with keys of 32 bytes in base64, one in a line, that seal the sessions of the page; the first seals, all open")
}

// check finds flags that do not go together.
func (f *signInFlags) check(apiServerTokens bool) error {
	switch {
	case *f == signInFlags{scopes: f.scopes}:
		return nil
	case f.issuer == "" || f.client == "" || f.redirect == "" || f.keyFile == "":
		return errors.New("--oidc-issuer-url, --oidc-client-id, --oidc-redirect-url and --session-key-file go together")
	case !apiServerTokens:
		return errors.New("--oidc-issuer-url needs --accept-api-server-tokens, because people use ID tokens")
	}
	return nil
}

// open prepares the sign-in; nil if there is none.
func (f *signInFlags) open(callers *apiclient.Client) (*signin.SignIn, error) {
	if f.issuer == "" {
		return nil, nil
	}
	keys, err := os.ReadFile(f.keyFile)
	if err != nil {
		return nil, fmt.Errorf("reading --session-key-file: %w", err)
	}
	options := signin.Options{Issuer: f.issuer, ClientID: f.client, Scopes: strings.Split(f.scopes, ","),
		RedirectURL: f.redirect, Callers: callers, Now: time.Now}
	if options.Keys, err = signin.ParseKeys(string(keys)); err != nil {
		return nil, fmt.Errorf("reading --session-key-file %s: %w", f.keyFile, err)
	}
	if f.secretFile != "" {
		secret, err := os.ReadFile(f.secretFile)
		if err != nil {
			return nil, fmt.Errorf("reading --oidc-client-secret-file: %w", err)
		}
		options.ClientSecret = strings.TrimSpace(string(secret))
	}
	if options.Transport, err = f.transport(); err != nil {
		return nil, err
	}
	return signin.New(options)
}

// transport reaches the provider.
func (f *signInFlags) transport() (http.RoundTripper, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // No one here replaces it.
	if f.caFile == "" {
		return transport, nil
	}
	authorities, err := os.ReadFile(f.caFile)
	if err != nil {
		return nil, fmt.Errorf("reading --oidc-ca-file: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("reading --oidc-ca-file: %s has no certificate in PEM", f.caFile)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return transport, nil
}
