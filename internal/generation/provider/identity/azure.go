// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"parley.dev/parley/internal/generation/provider/fault"
)

// The environment that the webhook of Azure Workload Identity gives a pod.
const (
	azureClientID  = "AZURE_CLIENT_ID"
	azureTenantID  = "AZURE_TENANT_ID"
	azureTokenFile = "AZURE_FEDERATED_TOKEN_FILE"
	azureAuthority = "AZURE_AUTHORITY_HOST"
)

// azure exchanges the service-account token of the pod for one of Entra ID. Its file is read each time: it rotates.
func (i *Identity) azure(ctx context.Context, scope string) (string, time.Time, error) {
	client, tenant, file := os.Getenv(azureClientID), os.Getenv(azureTenantID), os.Getenv(azureTokenFile)
	for _, name := range []string{azureClientID, azureTenantID, azureTokenFile} {
		if os.Getenv(name) == "" {
			return "", time.Time{}, &fault.LoginError{Problem: fmt.Sprintf(
				"$%s, which the webhook of Azure Workload Identity sets, is not set in the generation pod", name)}
		}
	}
	account := fmt.Sprintf("client %s of tenant %s", client, tenant)
	assertion, err := os.ReadFile(file)
	if err != nil {
		return "", time.Time{}, &fault.LoginError{Identity: account, Problem: fmt.Sprintf(
			"the file that $%s names cannot be read in the generation pod", azureTokenFile)}
	}
	authority := cmp.Or(os.Getenv(azureAuthority), "https://login.microsoftonline.com/")
	endpoint, err := url.JoinPath(authority, url.PathEscape(tenant), "oauth2", "v2.0", "token")
	if err != nil || !strings.HasPrefix(endpoint, "https://") {
		return "", time.Time{}, &fault.LoginError{Identity: account, Problem: fmt.Sprintf(
			"$%s of the generation pod is no https URL", azureAuthority)}
	}
	asking := &exchange{}
	token, err := (&clientcredentials.Config{
		ClientID: client, TokenURL: endpoint, Scopes: []string{scope}, AuthStyle: oauth2.AuthStyleInParams,
		EndpointParams: url.Values{
			"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
			"client_assertion":      {strings.TrimSpace(string(assertion))},
		},
	}).Token(context.WithValue(ctx, oauth2.HTTPClient, asking.over(i.client)))
	if err != nil {
		return "", time.Time{}, asking.failure(account)
	}
	return token.AccessToken, token.Expiry, nil
}
