// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config embeds the manifests that an installation is compared with.
package config

import "embed"

// Files are the roles and the admission policies.
//
//go:embed rbac/*.yaml admission/*.yaml admission/stamp/*.yaml
var Files embed.FS
