"""Plain recursions of one pass, written from the formulas of docs/one-pass.md: slow, and easy to believe."""

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
