// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// The dashboard follows: what Grafana's types do not have is an error of the compiler.
import { type Dashboard, ThresholdsMode } from "@grafana/schema";

export const dashboard: Dashboard =
