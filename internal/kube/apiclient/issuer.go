// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclient

import (
	"context"
	"fmt"
)

// IssuerKeys is the JSON Web Key Set with which the cluster signs service-account tokens, as the API server publishes
// it. Every service account may read it, unless the administrator has changed that.
func (c *Client) IssuerKeys(ctx context.Context) ([]byte, error) {
	set, err := c.rest.Get().AbsPath("/openid/v1/jwks").SetHeader("Accept", "application/jwk-set+json, application/json").
		DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the keys of the cluster's issuer: %w", err)
	}
	return set, nil
}
