"""Plain recursions of one pass, from the formulas of docs/one-pass-theory.md: slow, and easy to believe."""

import numpy as np


def pair_covariances(problem):
    """G_pq = S diag(σ_min(p,q) a^|p-q|) Sᵀ, E[u_p u_qᵀ]: P × P × M × M; and the same of the latent states."""
    modes, S, P = problem.modes, problem.S, problem.P
    sigma = modes.covariance(np.arange(P))
    latent = np.array(
        [[sigma[min(p, q)] * modes.a ** abs(p - q) for q in range(P)] for p in range(P)]
    )  # P × P × d
    return latent, np.einsum("mj,pqj,nj->pqmn", S, latent, S, optimize=True)


def score_covariance(problem, D):
    """Cov of T = (1/P) Σ_p r_p u_pᵀ, r_p = D x_p + S ξ_{p+1}, summed over rows: Isserlis, pair by pair.

    Σ_pq E[r_p·r_q] E[u_p u_qᵀ] + E[u_p r_qᵀ] E[r_p u_qᵀ], the mean's square left out.
    """
    modes, S, P = problem.modes, problem.S, problem.P
    latent, seen = pair_covariances(problem)
    total = np.zeros((problem.M, problem.M))
    for p in range(P):
        for q in range(P):
            x = latent[p, q]
            # E[r_p r_qᵀ]; ξ_{p+1} is in x_q where q > p, with a^{q-p-1}.
            noise = modes.sigma_xi
            later = noise * modes.a ** max(abs(q - p) - 1, 0)
            rr = (D * x) @ D.T
            rr = rr + (S * noise) @ S.T * (p == q)
            if q > p:
                rr = rr + (S * later) @ D.T  # ξ_{p+1} with x_q
            if p > q:
                rr = rr + (D * later) @ S.T
            # E[r_p u_qᵀ] and E[u_p r_qᵀ].
            ru = (D * x) @ S.T + ((S * later) @ S.T if q > p else 0)
            ur = (S * x) @ D.T + ((S * later) @ S.T if p > q else 0)
            total += np.trace(rr) * seen[p, q] + ur @ ru
    return total / P**2


def moment_recursion(problem, batch, steps):
    """V_L of (3): the covariance of the iterate, the whole matrix."""
    return ladder_recursion([(problem, batch, steps)])[1]


def ladder_recursion(phases):
    """Mean and covariance of the iterate through phases (problem, batch, steps), step by step."""
    M = phases[0][0].M
    B, V, one = np.zeros((M, M)), np.zeros((M, M)), np.eye(M)
    for problem, batch, steps in phases:
        G = problem.G
        _, seen = pair_covariances(problem)
        m = B - problem.B_star
        for gamma in steps:
            noise = score_covariance(problem, problem.D - m @ problem.S) + _feedback(seen, V)
            V = (one - gamma * G) @ V @ (one - gamma * G) + gamma**2 / batch * noise
            m = m @ (one - gamma * G)
        B = problem.B_star + m
    return B, V


def preconditioned_recursion(problem, batch, schedule):
    """Mean and covariance of B ← B - γ[(BĜ - Ĉ)G^-p + λB], G the population's: the whole matrices."""
    G, one, decay = problem.G, np.eye(problem.M), schedule.weight_decay
    mu, U = np.linalg.eigh(G)
    factor = (U * mu**-schedule.precondition) @ U.T
    _, seen = pair_covariances(problem)
    m, V = -problem.B_star, np.zeros((problem.M, problem.M))
    for gamma in schedule.steps():
        noise = score_covariance(problem, problem.D - m @ problem.S) + _feedback(seen, V)
        keep = one - gamma * (G @ factor + decay * one)
        V = keep.T @ V @ keep + gamma**2 / batch * factor @ noise @ factor
        m = m @ keep - gamma * decay * problem.B_star
    return problem.B_star + m, V


def _feedback(seen, X):
    """N[X] = (1/P²) Σ_pq tr(X G_pq) G_pq + G_pq X G_pq."""
    traces = np.einsum("ij,pqji->pq", X, seen)
    return (np.einsum("pq,pqij->ij", traces, seen) + np.einsum("pqij,jk,pqkl->il", seen, X, seen)) / len(
        seen
    ) ** 2


def growth(problem, batch, gamma):
    """The spectral radius of V ← (I-γG)V(I-γG) + (γ²/b) N[V]."""
    M = problem.M
    _, seen = pair_covariances(problem)
    shrink = np.eye(M) - gamma * problem.G
    columns = []
    for k in range(M * M):
        X = np.zeros(M * M)
        X[k] = 1
        X = X.reshape(M, M)
        columns.append((shrink @ X @ shrink + gamma**2 / batch * _feedback(seen, X)).ravel())
    return float(np.abs(np.linalg.eigvals(np.array(columns).T)).max())


def diagonal_loop(nodes, batch, steps):
    """v of (10), one step after another."""
    v, psi = np.zeros(nodes.mu.size), np.ones(nodes.mu.size)
    for gamma in steps:
        noise = nodes.A + nodes.ell @ (nodes.w * psi)
        noise = noise + (nodes.R * nodes.w + nodes.Q) @ (v + nodes.beta * psi**2)
        v = (1 - gamma * nodes.mu) ** 2 * v + gamma**2 / batch * noise
        psi = (1 - gamma * nodes.mu) * psi
    return v


def epochs_loop(nodes, batch, N, sizes, n):
    """The law of epochs step by step: v, the full batch's noise Φ(ā, c̄)/N, and χ; n steps an epoch."""
    mu, w, A, beta = nodes.mu, nodes.w, nodes.A, nodes.beta
    F = nodes.R * w + nodes.Q

    def phi(a, c):
        return A * a**2 + a * ((nodes.ell * c) @ w) + (F * c**2) @ beta

    zero = np.zeros_like(nodes.R)
    v, psi = 0 * mu, 0 * mu + 1
    a_all, c_all = 0 * mu, zero
    for first in range(0, len(sizes), n):
        own = sizes[first : first + n]
        start, left = psi, np.prod(1 - np.outer(own, mu), axis=0)
        u = phi(a_all, c_all) / N
        s = (1 + (F / np.outer(mu, mu)) @ (abs(left) * (1 - start)) / N) ** -2
        a, c, q, r = 0 * mu, zero, zero, 0 * mu + 1
        for gamma in own:
            p = 1 - gamma * mu
            source = A + nodes.ell @ (w * psi) + F @ (beta * psi**2 + u * r**2)
            v = p**2 * v + gamma**2 / batch * (s * source + F @ v)
            a, a_all = p * a + gamma, p * a_all + gamma
            c, c_all = (p[:, None] * x + gamma * psi for x in (c, c_all))
            q = p[:, None] * q + gamma * r
            psi, r = p * psi, p * r
        v = v - s / N * (phi(a, c) + (F * q**2) @ u)
    sums = np.array([sizes[first : first + n].sum() for first in range(0, len(sizes), n)])
    return v, phi(a_all, c_all) / N, (sums**2).sum() / sums.sum() ** 2
